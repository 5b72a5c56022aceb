"""The form that takes a skill's folder as a zip."""

from typing import Any

from django import forms

from marketplace.protocol.skillmd.zipped import MAX_FILES, MAX_UNPACKED, MAX_ZIP

MEGABYTE = 1_000_000


class FolderUploadForm(forms.Form):
    archive = forms.FileField(
        label="A skill's folder, as a zip",
        max_length=200,
        help_text=f"SKILL.md at its top, or in its one folder. At most {MAX_ZIP // MEGABYTE} MB, unpacked"
        f" {MAX_UNPACKED // MEGABYTE} MB and {MAX_FILES} files. A folder of the same name is replaced.",
        widget=forms.ClearableFileInput(attrs={"accept": ".zip,application/zip"}),
        error_messages={"required": "Choose a zip file.", "missing": "Choose a zip file."},
    )

    def clean_archive(self) -> Any:
        sent = self.cleaned_data["archive"]
        if sent.size > MAX_ZIP:
            raise forms.ValidationError(f"The zip is larger than {MAX_ZIP // MEGABYTE} MB.")
        return sent
