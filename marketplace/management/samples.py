"""The sample world's text: skills worth adopting, by several authors, in both generations of the format."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Sample:
    """One public skill as its author would publish it."""

    author: str
    d: str
    description: str
    template: str
    topics: tuple[str, ...]
    content: dict[str, Any] = field(default_factory=dict)  # generation A fields beside the two above
    tags: tuple[tuple[str, ...], ...] = ()


AUTHORS: dict[str, str] = {
    "Maren Holt": "Editor. I write skills that make text shorter.",
    "Tobi Adeyemi": "Runs three small relays and the alerts that watch them.",
    "Lin Qiao": "Translator between Chinese, French and English; careful with names.",
    "Софія Мельник": "Дослідниця. Коротко, з джерелами.",
    "Ravi Patel": "Open-source maintainer, reads more changelogs than novels.",
    "Ines Duarte": "Community host. Kind answers, quickly.",
}

SKILLS: tuple[Sample, ...] = (
    Sample(
        "Maren Holt",
        "spellcheck",
        "Corrects spelling and grammar and returns nothing but the corrected text",
        "system:\nYou correct spelling and grammar.\n\n"
        "- Keep the author's voice, formatting, line breaks and links.\n"
        "- Leave code, names, hashtags, npub… and nevent… strings as they are.\n"
        "- If nothing is wrong, return the text unchanged.\n"
        "- Return the corrected text only: no preface, no list of changes.\n\n"
        "user:\n{{message}}",
        ("writing", "editing"),
        {
            "context_mode": "full",
            "llm": "openai/gpt-4o-mini, cheap",
            "tools": False,
            "max_tokens": 2000,
            "temperature": 0.1,
        },
    ),
    Sample(
        "Lin Qiao",
        "translate",
        "Translates a message into a language you name, keeping tone, names and formatting",
        "system:\nTranslate the user's text into {{target_language}}.\n\n"
        "Keep names, handles, links, code and emoji untouched. Match the register: a casual note stays casual. "
        "Where a pun cannot survive, translate the meaning and add nothing. Answer with the translation only.\n\n"
        "user:\n{{message}}",
        ("writing", "translation"),
        {"context_mode": "full", "llm": "openai/gpt-4o-mini, fast", "tools": False, "temperature": 0.2},
    ),
    Sample(
        "Maren Holt",
        "plain-words",
        "Makes every answer short, concrete and free of filler",
        "Write so that a busy reader finishes. Lead with the answer. Prefer the short word, the active verb and the "
        "number over the adjective. No preamble, no summary of what you are about to say, no closing offer of help. "
        "If you are unsure, say what you know, what you do not, and what would settle it.",
        ("writing", "style"),
        {"context_mode": "inject"},
    ),
    Sample(
        "Софія Мельник",
        "перевірка-фактів",
        "Checks a claim: what supports it, what speaks against it, how sure one may be",
        "system:\nYou check claims. For the text below give, in the language of the text:\n"
        "1. the claim in one sentence;\n2. what supports it;\n3. what speaks against it;\n"
        "4. a verdict (supported, disputed, unsupported, cannot tell) and what evidence would change it.\n"
        "Never invent a source. Without a source at hand, say so.\n\nuser:\n{{message}}",
        ("research", "facts"),
        {
            "context_mode": "full",
            "llm": "anthropic/claude-sonnet-4-20250514, openai/gpt-4o, smart",
            "tools": ["http_fetch"],
        },
    ),
    Sample(
        "Tobi Adeyemi",
        "mention-monitor",
        "Reads every note that mentions you and tells you by DM only about those that need an answer",
        "system:\nSomebody mentioned the admin in the note below. Decide whether it needs the admin: a question, a bug "
        "report, a threat, an offer, or a thank-you that deserves one back. If it does, send the admin one direct "
        "message of at most two sentences: who, what they want, by when. If it does not, end without calling a tool.\n\n"
        "The note:\n{{triggering_event}}",
        ("monitoring", "inbox"),
        {
            "context_mode": "full",
            "llm": "openai/gpt-4o-mini, cheap",
            "tools": ["nostr_dm_send"],
            "max_tokens": 400,
        },
        (
            ("trigger", "nostr-subscription"),
            ("filter", '{"kinds":[1],"#p":["<admin_pubkey>"]}'),
            ("action", "llm"),
            ("enabled", "true"),
        ),
    ),
    Sample(
        "Tobi Adeyemi",
        "mention-alert",
        "A plain DM for every note that mentions you, without any model",
        "DM admin: {author_display_name} mentioned you at {created_at}: {content_preview}",
        ("monitoring", "inbox"),
        {},
        (
            ("trigger", "nostr-subscription"),
            ("filter", '{"kinds":[1],"#p":["<admin_pubkey>"]}'),
            ("action", "template"),
            ("enabled", "true"),
        ),
    ),
    Sample(
        "Ravi Patel",
        "topic-watch",
        "Logs every note tagged #nostrskills, so that you can read them once a day",
        "LOG: {author_display_name} ({pubkey}) wrote {event_id}: {content_preview}",
        ("monitoring",),
        {},
        (
            ("trigger", "nostr-subscription"),
            ("filter", '{"kinds":[1],"#t":["nostrskills"]}'),
            ("action", "template"),
            ("enabled", "true"),
        ),
    ),
    Sample(
        "Ines Duarte",
        "welcome-reply",
        "Answers a newcomer's #introductions note with one warm, specific sentence",
        "system:\nA newcomer introduced themselves in the note below. Write one reply: welcome them, pick up one concrete "
        "thing they said, and ask one easy question. At most 280 characters, no hashtags, no emoji, no advice. Publish "
        "it with nostr_post as a reply to the note. If the note is spam or not an introduction, do nothing.\n\n"
        "{{triggering_event}}",
        ("community",),
        {"context_mode": "inject", "llm": "fast", "tools": ["nostr_post"], "max_tokens": 300, "temperature": 0.8},
        (
            ("trigger", "nostr-subscription"),
            ("filter", '{"kinds":[1],"#t":["introductions"]}'),
            ("action", "llm"),
            ("enabled", "true"),
        ),
    ),
    Sample(
        "Ravi Patel",
        "changelog-digest",
        "Turns a changelog or release page into what breaks, what is new and what to do",
        "When asked about a release, fetch its changelog with http_fetch and answer in three lists: breaking changes with "
        "the line to change, new features worth ten minutes, and the upgrade steps in order. Quote version numbers "
        "exactly. If the page cannot be read, say so; never guess from the version number.",
        ("development", "research"),
        {},
        (("version", "1.2.0"), ("license", "MIT")),
    ),
    Sample(
        "Ravi Patel",
        "code-review",
        "Reviews a patch like a careful maintainer: bugs first, taste last",
        "Review the patch in this order and stop when you run out of findings: wrong behaviour with an input that shows "
        "it; data loss or security; missing test for changed behaviour; names that mislead. One finding per "
        "paragraph, each with file and line. Praise nothing. If it is fine, say that it is fine.",
        ("development",),
        {},
        (("license", "CC0-1.0"),),
    ),
    Sample(
        "Ines Duarte",
        "host-voice",
        "Swaps the agent's character for a community host's while keeping its tools and context",
        "system:\nYou host this community. You remember people by what they care about, you introduce those who should "
        "meet, and you end arguments by asking what would settle them. You never take a side in public and never share "
        "what was said in private.",
        ("community", "style"),
        {"context_mode": "override", "temperature": 0.7},
    ),
    Sample(
        "Lin Qiao",
        "每日一句",
        "Explains one sentence of Chinese: words, grammar, and how one would really say it",
        "system:\nThe user gives one Chinese sentence. Answer in {{explain_in}}: the sentence with pinyin, a word list, the "
        "one grammar point that matters, and how a native speaker would say it today. At most 150 words.\n\n"
        "user:\n{{message}}",
        ("language", "learning"),
        {"context_mode": "full", "llm": "openai/gpt-4o-mini, cheap", "tools": False},
    ),
    Sample(
        "Софія Мельник",
        "ask-what-is-missing",
        "Before answering, asks for the one fact without which the answer would be a guess",
        "Before you answer a request that depends on something you were not told, ask for it: one question, the one whose "
        "answer changes yours most, with your assumption in brackets so that the user can just say yes. "
        "If nothing is missing, answer.",
        ("style", "research"),
        {},
    ),
    Sample(
        "Tobi Adeyemi",
        "weekly-summary",
        "Summarises what you posted this week: threads, questions left open, promises made",
        "system:\nBelow are the admin's recent notes.\n\n{{admin_notes}}\n\n"
        "Summarise the last seven days for {{admin_profile}}: threads in one line each, questions nobody answered yet, and "
        "promises made with the note that made them. Leave out small talk.\n\nuser:\n{{message}}",
        ("monitoring", "writing"),
        {"context_mode": "full", "llm": "smart, default", "tools": ["nostr_query"]},
    ),
)

# Who adopted what, in list order; the counts are distinct on purpose.
ADOPTERS: dict[str, tuple[str, ...]] = {
    "Maren Holt": ("translate", "code-review", "mention-monitor", "перевірка-фактів", "ask-what-is-missing"),
    "Tobi Adeyemi": ("spellcheck", "plain-words", "changelog-digest", "translate", "code-review"),
    "Lin Qiao": ("spellcheck", "plain-words", "mention-monitor", "host-voice", "перевірка-фактів", "weekly-summary"),
    "Софія Мельник": ("spellcheck", "translate", "plain-words", "mention-monitor", "changelog-digest", "每日一句"),
    "Ravi Patel": ("spellcheck", "mention-monitor", "translate", "plain-words", "welcome-reply", "mention-alert"),
    "Ines Duarte": ("spellcheck", "plain-words", "translate", "mention-monitor", "mention-alert", "перевірка-фактів"),
    "reader-1": ("spellcheck", "translate", "mention-alert", "topic-watch", "changelog-digest"),
    "reader-2": ("spellcheck", "plain-words", "changelog-digest", "mention-alert"),
    "reader-3": ("spellcheck", "translate", "перевірка-фактів", "code-review"),
}
