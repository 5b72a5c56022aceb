from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0005_history_of_changes'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='disclosure',
            field=models.JSONField(default=dict),
        ),
    ]
