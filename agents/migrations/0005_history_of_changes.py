import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0004_conversations"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField("agent", "model_choices", models.JSONField(blank=True, default=list)),
        migrations.AddField("agent", "public_skills", models.BooleanField(default=False)),
        migrations.AddField("agent", "self_change", models.BooleanField(default=False)),
        migrations.CreateModel(
            name="Change",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField()),
                ("actor", models.CharField(choices=[("owner", "you"), ("agent", "the agent")], max_length=5)),
                ("what", models.CharField(max_length=40)),
                ("object", models.CharField(default="", max_length=300)),
                ("before", models.JSONField(null=True)),
                ("after", models.JSONField(null=True)),
                (
                    "agent",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="changes",
                        to="agents.agent",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="changes",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="changes",
                        to="agents.run",
                    ),
                ),
            ],
            options={"ordering": ["-id"]},
        ),
        migrations.AddIndex("change", models.Index(fields=["agent", "-id"], name="changes_of_agent")),
    ]
