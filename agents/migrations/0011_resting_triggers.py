from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("agents", "0010_skill_uploads"),
    ]

    operations = [
        migrations.AddField(
            model_name="trigger",
            name="catch_up",
            field=models.CharField(
                choices=[
                    ("skip", "none of them"),
                    ("one", "once for all of them"),
                    ("all", "each, the last ten at most"),
                ],
                default="one",
                max_length=4,
            ),
        ),
        migrations.AddField(
            model_name="trigger",
            name="failures",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="trigger",
            name="rests",
            field=models.CharField(
                blank=True,
                choices=[("paused", "paused"), ("failures", "stopped after 5 failures in a row")],
                default="",
                max_length=8,
            ),
        ),
        migrations.AddField(
            model_name="trigger",
            name="rests_until",
            field=models.DateTimeField(null=True),
        ),
    ]
