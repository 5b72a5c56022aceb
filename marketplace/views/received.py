"""How much a form with files may send: known before a byte of it is stored."""

from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.core.files.uploadhandler import FileUploadHandler

# A folder of skills may have 10 MB; what is somewhat larger still gets its error beside the field.
MAX_BYTES = 32_000_000


class Bounded(FileUploadHandler):
    """First of the handlers: refuses the whole request, passes everything else on."""

    def handle_raw_input(
        self, input_data: Any, META: Any, content_length: int, boundary: Any, encoding: str | None = None
    ) -> None:
        if content_length > MAX_BYTES:
            raise RequestDataTooBig("The form holds more than this site takes.")

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        return raw_data

    def file_complete(self, file_size: int) -> None:
        return None
