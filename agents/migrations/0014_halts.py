import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q, Value


class Migration(migrations.Migration):

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("agents", "0013_budget_notices"),
    ]

    operations = [
        migrations.CreateModel(
            name="Halt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(Value(1), condition=Q(("ended_at", None)), name="one_open_halt"),
                ],
            },
        ),
    ]
