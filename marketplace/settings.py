"""All settings of the site: it works with nothing set, and refuses nonsense loudly."""

from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from marketplace import environment as env

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = Path(env.text("JOURNEYMAN_VAR", str(BASE_DIR / "var"))).resolve()
VAR_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)  # sessions, runs and drafts are the owner's alone


def _secret_key() -> str:
    """The key given, or one made at first start and kept beside the data."""
    given = env.text("JOURNEYMAN_SECRET_KEY")
    if given:
        if len(given) < 50:
            raise ImproperlyConfigured("JOURNEYMAN_SECRET_KEY must have at least 50 characters")
        return given
    return env.kept_secret(VAR_DIR / "secret.key")


# --- The site --------------------------------------------------------------
PORT = env.number("PORT", 8000, 1, 65535)
RELAY_PORT = env.number("RELAY_PORT", 7777, 1, 65535)
if PORT == RELAY_PORT:
    raise ImproperlyConfigured(f"PORT and RELAY_PORT are both {PORT}; each needs its own")
DEBUG = env.flag("JOURNEYMAN_DEBUG", False)
SECRET_KEY = _secret_key()
SITE_URL = env.text("JOURNEYMAN_SITE_URL", f"http://127.0.0.1:{PORT}").rstrip("/")
SECURE = SITE_URL.startswith("https://")
ALLOWED_HOSTS = env.words("JOURNEYMAN_HOSTS", "127.0.0.1 localhost [::1]")
CSRF_TRUSTED_ORIGINS = [SITE_URL]
SITE_NAME = env.text("JOURNEYMAN_SITE_NAME", "Journeyman")
SIGN_UP_OPEN = env.flag("JOURNEYMAN_SIGN_UP", False)
DEMO = env.flag("JOURNEYMAN_DEMO", True)

# --- Relays ----------------------------------------------------------------
EMBEDDED_RELAY = env.flag("JOURNEYMAN_EMBEDDED_RELAY", True)
EMBEDDED_RELAY_URL = f"ws://127.0.0.1:{RELAY_PORT}"
RELAYS = env.relay_urls("JOURNEYMAN_RELAYS", EMBEDDED_RELAY_URL if EMBEDDED_RELAY else "")
WRITE_RELAYS = env.relay_urls("JOURNEYMAN_WRITE_RELAYS", " ".join(RELAYS))
# Hosts and addresses that forms, events and tools may reach though they are not public.
ALLOW_ADDRESSES = env.words("JOURNEYMAN_ALLOW_ADDRESSES")
VAULT_KEY_FILE = Path(env.text("JOURNEYMAN_VAULT_KEY_FILE", str(VAR_DIR / "vault.key")))
# Keys (npub or hex) whose follows count as trusted.
TRUST_SEEDS = env.words("JOURNEYMAN_TRUST_SEEDS")

# --- Models ----------------------------------------------------------------
DEFAULT_LLM = env.text("JOURNEYMAN_DEFAULT_LLM", "offline/echo")
# An OpenAI-compatible server for models named `openai/…` (Ollama, llama.cpp, vLLM).
LLM_BASE_URL = env.text("JOURNEYMAN_LLM_BASE_URL")
LLM_API_KEY = env.text("JOURNEYMAN_LLM_API_KEY")
LLM_TIMEOUT = env.number("JOURNEYMAN_LLM_TIMEOUT", 120, 1, 3600)
# Characters of a skill's description in the catalogue of skills on demand.
CATALOG_DESCRIPTION_LENGTH = env.number("JOURNEYMAN_CATALOG_DESCRIPTION_LENGTH", 500, 3, 10_000)
# Where `make up MODEL=local` serves the small model of the extra local-model.
LOCAL_MODEL_PORT = env.number("LOCAL_MODEL_PORT", 18081, 1, 65535)

# --- Skills -----------------------------------------------------------------
# Folders of Agent Skills (SKILL.md) that every agent may load on demand.
SKILLS_DIRS = env.folders("JOURNEYMAN_SKILLS_DIRS")

# --- Limits of triggered runs, for the whole site ---------------------------
MAX_CONCURRENT_TRIGGERS = env.number("JOURNEYMAN_MAX_CONCURRENT_TRIGGERS", 16, 1, 10_000)
TRIGGER_COOLDOWN = env.number("JOURNEYMAN_TRIGGER_COOLDOWN", 60, 0, 86_400)
LLM_ACTIONS_PER_MINUTE = env.number("JOURNEYMAN_LLM_ACTIONS_PER_MINUTE", 10, 0, 100_000)
TEMPLATE_ACTIONS_PER_MINUTE = env.number("JOURNEYMAN_TEMPLATE_ACTIONS_PER_MINUTE", 60, 0, 100_000)
APPROVAL_DAYS = env.number("JOURNEYMAN_APPROVAL_DAYS", 7, 1, 365)
WORKER_CONCURRENCY = env.number("JOURNEYMAN_WORKER_CONCURRENCY", 2, 1, 64)
WEB_PROCESSES = env.number("JOURNEYMAN_WEB_PROCESSES", 1, 1, 64)
# Which of its own processes `make up` starts here; what the others need is then left out of memory.
PROCESS = env.text("JOURNEYMAN_PROCESS")

# --- Django ----------------------------------------------------------------
ROOT_URLCONF = "marketplace.urls"
WSGI_APPLICATION = "marketplace.wsgi.application"
AUTH_USER_MODEL = "marketplace.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
APPEND_SLASH = True
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "django_htmx",
    "ninja",
    "marketplace",
    "agents",
]
if PROCESS == "relay":
    INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "marketplace"]
elif PROCESS in {"listener", "tick", "worker"}:
    INSTALLED_APPS.remove("ninja")  # an app for its static files alone; the rest of it comes with the pages
MIDDLEWARE = [
    "marketplace.views.spilled.SpilledKeys",  # before anything that logs or shows an address
    "django.middleware.security.SecurityMiddleware",
    "marketplace.views.headers.SecurityHeaders",
    "django.middleware.gzip.GZipMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "marketplace.views.chrome.chrome",
                "agents.views.current.agents_nav",
                "agents.views.health.banners",
            ],
        },
    }
]
DATABASES = {"default": env.database("DATABASE_URL", str(VAR_DIR / "journeyman.sqlite3"))}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
STATIC_URL = "/static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
# What a form may carry: a 200 kB template fits, a flood does not.
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_500_000
FILE_UPLOAD_HANDLERS = [
    "marketplace.views.received.Bounded",
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "django.core.files.uploadhandler.TemporaryFileUploadHandler",
]

# --- Accounts --------------------------------------------------------------
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
ACCOUNT_ADAPTER = "marketplace.views.accounts.ClosedSignUpAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/agents/"
LOGOUT_REDIRECT_URL = "/"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"

# --- Security --------------------------------------------------------------
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE
# Two copies on one host differ only in the port, which cookies ignore.
SESSION_COOKIE_NAME = "__Host-journeyman" if SECURE else f"journeyman-{PORT}"
CSRF_COOKIE_NAME = "__Host-csrf" if SECURE else f"csrf-{PORT}"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SECURE_SSL_REDIRECT = SECURE
SECURE_HSTS_SECONDS = 63_072_000 if SECURE else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = SECURE
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if env.flag("JOURNEYMAN_BEHIND_PROXY", False) else None
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "marketplace.views.errors.csrf_failed"
if not SECURE:
    # Without HTTPS these checks have nothing to say; with it they hold.
    SILENCED_SYSTEM_CHECKS = ["security.W004", "security.W008", "security.W012", "security.W016"]

# --- Celery ----------------------------------------------------------------
CELERY_BROKER_URL = env.text("CELERY_BROKER_URL", "filesystem://")
BROKER_DIR = VAR_DIR / "broker"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "filters": {"tidy": {"()": "marketplace.logs.Tidy"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain", "filters": ["tidy"]}},
    # Warns that the folder used as a broker has no host name.
    "loggers": {"kombu.connection": {"level": "ERROR"}},
    "root": {"handlers": ["console"], "level": env.text("JOURNEYMAN_LOG_LEVEL", "INFO").upper()},
}
