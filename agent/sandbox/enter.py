"""Opens the way out for a confined command, then becomes it. A script of its own: it is started by path inside of the
sandbox and imports nothing of ours.

    python -I -S enter.py SOCKET "NAMES WITHOUT PROXY" program argument ...

It listens at a port of the sandbox's own loopback and hands that listening socket to refold, at a socket that was bound
into the sandbox. So refold itself takes up the connections that are made inside, and nothing has to stay here to pass
them on. Along with it goes what tells of the sandbox's end: a descriptor of its first process.
"""

import os
import socket
import sys

SECONDS = 20.0
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def open_way(path: str) -> int:
    """The port that leads out. Raises OSError, AttributeError (a kernel or Python that cannot tell of the end)."""
    with socket.socket() as door, socket.socket(socket.AF_UNIX) as way:
        door.bind(("127.0.0.1", 0))
        door.listen(128)
        way.settimeout(SECONDS)
        way.connect(path)
        end = os.pidfd_open(1)
        try:
            socket.send_fds(way, [b"1"], [door.fileno(), end])
        finally:
            os.close(end)
        if way.recv(1) != b"1":
            raise OSError("it was not taken up")
        return int(door.getsockname()[1])


def main(arguments: "list[str]") -> None:
    path, names, *argv = arguments
    try:
        address = f"http://127.0.0.1:{open_way(path)}"
    except (OSError, AttributeError) as error:
        sys.stderr.write(f"refold: no host can be reached from here: {error}\n")
    else:
        for name in PROXIES:
            os.environ[name] = os.environ[name.lower()] = address
        os.environ["NO_PROXY"] = os.environ["no_proxy"] = names
        os.environ["NODE_USE_ENV_PROXY"] = "1"
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"refold: {argv[0]}: {error.strerror}\n")
        sys.exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
