"""Images of a message as data URLs, which is how a chat request carries them."""

from __future__ import annotations

import base64

from transcripts.blobs import Blobs
from transcripts.records import Image


def data_url(image: Image, blobs: Blobs) -> str:
    """The image as a data URL; "" where its bytes are gone."""
    try:
        body = blobs.get(image.blob)
    except KeyError:
        return ""
    return f"data:{image.media};base64,{base64.b64encode(body).decode()}"
