"""Confines itself with Landlock and seccomp, then becomes the program it was given. A script of its own: it is started
by path, imports nothing of ours, and uses the kernel's interface directly.

    python -I -S confine.py '{"hidden": [...], "writable": [...], "network": false, ...}' program argument ...

Exit code 97: the kernel refused the confinement; nothing was run then.
"""

import ctypes
import json
import os
import platform
import struct
import sys

FAILED = 97

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 38, 22, 24
_KEPT_CAPABILITIES = (0, 1, 3, 4)  # chown, dac_override, fowner, fsetid

# Access rights to files, by the version of Landlock that brought them.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_V1, _REFER, _TRUNCATE, _IOCTL = (1 << 13) - 1, 1 << 13, 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_TCP = 3
_SCOPES = 3

_ARCHITECTURES = {
    # audit code, socket, io_uring_setup, and the calls that change what Landlock does not watch: modes, owners,
    # times, attributes.
    "x86_64": (
        0xC000003E,
        41,
        425,
        (90, 91, 268, 452, 92, 93, 94, 260, 132, 235, 261, 280, 188, 189, 190, 197, 198, 199),
    ),
    "aarch64": (0xC00000B7, 198, 425, (52, 53, 452, 54, 55, 88, 5, 6, 7, 14, 15, 16)),
}
_AF_UNIX = 1


def version() -> int:
    """The version of Landlock's interface; 0 where the kernel has none."""
    return max(0, _LIBC.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1)))


def handled(abi: int) -> int:
    """All rights to files that this version knows."""
    return _V1 | (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0) | (_IOCTL if abi >= 5 else 0)


class Ruleset:
    """The rules of one confinement."""

    def __init__(self, abi: int, network: bool) -> None:
        self.files = handled(abi)
        attributes = struct.pack("QQQ", self.files, 0 if network or abi < 4 else _TCP, _SCOPES if abi >= 6 else 0)[
            : 24 if abi >= 6 else 16 if abi >= 4 else 8
        ]
        self.descriptor = _LIBC.syscall(_CREATE, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), "landlock_create_ruleset")

    def allow(self, path: str, rights: int) -> None:
        """Rights to a file, or to a folder and all below it. What does not exist is passed over."""
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return
        try:
            rights &= self.files if os.path.isdir(path) else self.files & _OF_FILES
            rule = struct.pack("=Qi", rights, descriptor)
            _LIBC.syscall(_ADD, self.descriptor, ctypes.c_int(1), rule, ctypes.c_uint32(0))
        finally:
            os.close(descriptor)

    def restrict(self) -> None:
        """From here on; there is no way back."""
        if _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "no_new_privs")
        if _LIBC.syscall(_RESTRICT, self.descriptor, ctypes.c_uint32(0)):
            raise OSError(ctypes.get_errno(), "landlock_restrict_self")
        os.close(self.descriptor)


def allow_around(rules: Ruleset, folder: str, hidden: "list[str]", rights: int) -> None:
    """Rights to everything below a folder but the hidden paths: Landlock only knows what is allowed, so what lies
    beside a hidden path is allowed one by one."""
    inside = [h for h in hidden if h == folder or h.startswith(folder.rstrip("/") + "/")]
    if not inside:
        rules.allow(folder, rights)
        return
    if folder in hidden:
        return
    rules.allow(folder, _READ_DIR)
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if not entry.is_symlink():
            allow_around(rules, entry.path, inside, rights)


def drop_capabilities() -> None:
    """Root keeps what lets it use files of any owner, and nothing that could loosen the confinement."""
    if os.geteuid() != 0:
        return
    for number in range(64):
        if number not in _KEPT_CAPABILITIES:
            _LIBC.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
    kept = sum(1 << n for n in _KEPT_CAPABILITIES)
    header, sets = struct.pack("Ii", 0x20080522, 0), struct.pack("IIIIII", kept, kept, 0, 0, 0, 0)
    if _LIBC.capset(header, sets):
        raise OSError(ctypes.get_errno(), "capset")


def filter_calls(network: bool, fixed_modes: bool) -> None:
    """A seccomp filter: no sockets (with `network` only no unix sockets, which lead to other programs), no io_uring,
    which could open them, and no calls of another architecture."""
    known = _ARCHITECTURES.get(platform.machine())
    if known is None:
        if not network:
            raise OSError(38, f"no filter for {platform.machine()}")
        return
    audit, socket, ring, modes = known
    refuse = struct.pack("HBBI", 0x06, 0, 0, 0x00050000 | 13)
    allow = struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)
    load = lambda offset: struct.pack("HBBI", 0x20, 0, 0, offset)  # noqa: E731
    unless = lambda value, skip: struct.pack("HBBI", 0x15, 0, skip, value)  # noqa: E731
    program = [load(4), struct.pack("HBBI", 0x15, 1, 0, audit), refuse, load(0)]
    program += [struct.pack("HBBI", 0x35, 0, 1, 0x40000000), refuse]
    for call in (ring, *(modes if fixed_modes else ())):
        program += [unless(call, 1), refuse]
    if network:
        program += [unless(socket, 3), load(16), unless(_AF_UNIX, 1), refuse, allow]
    else:
        program += [unless(socket, 1), refuse, allow]
    code = b"".join(program)
    buffer = ctypes.create_string_buffer(code, len(code))
    whole = struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
    if _LIBC.prctl(_PR_SET_SECCOMP, 2, whole, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


def confine(spec: "dict[str, object]") -> None:
    """Applies a specification to this process and all it will start. Raises OSError."""
    abi = version()
    if not abi:
        raise OSError(38, "the kernel has no Landlock")
    hidden, writable = list(spec["hidden"]), list(spec["writable"])  # type: ignore[call-overload]
    rules = Ruleset(abi, bool(spec["network"]))
    allow_around(rules, "/", hidden, _READ)
    for path in writable:
        rules.allow(path, rules.files)
    for device in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "fd"):
        rules.allow(f"/dev/{device}", rules.files & (_READ | _WRITE_FILE | _TRUNCATE | _IOCTL))
    drop_capabilities()
    rules.restrict()
    filter_calls(bool(spec["network"]), bool(spec["fixed_modes"]))


def main(arguments: "list[str]") -> None:
    spec = json.loads(arguments[0])
    try:
        confine(spec)
    except OSError as error:
        sys.stderr.write(f"refold: the sandbox could not be set up: {error}\n")
        sys.exit(FAILED)
    for name in spec["forget"]:
        os.environ.pop(name, None)
    os.environ.update(spec["env"])
    try:
        os.execvp(arguments[1], arguments[1:])
    except OSError as error:
        sys.stderr.write(f"refold: {arguments[1]}: {error.strerror}\n")
        sys.exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
