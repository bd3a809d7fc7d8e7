"""What commands write: files whole or not at all, and words for what is in the way."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from discreet.errors import InvalidArgument

__all__ = ["shown", "whole_file"]


@contextmanager
def whole_file(
    path: str | os.PathLike[str],
    *,
    option: str = "--output",
    replace: bool = False,
    private: bool = False,
    binary: bool = False,
) -> Iterator[IO[Any]]:
    """A file to write text to, or bytes if it is `binary`, which has its name once all of it is on the disk.

    It is written under another name beside it. If that fails, what was there before is there still, and nothing else.
    An existing file is refused, first of all, unless it is to be replaced. Only its owner may read a `private` one.
    `option` is what errors call the path.
    """
    target = Path(os.path.realpath(path))
    aside = target.with_name(f".discreet-{secrets.token_hex(8)}")
    try:
        if not replace and target.exists():
            raise FileExistsError(errno.EEXIST, "exists")
        opened = os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if private else 0o666)
        with os.fdopen(opened, "wb") if binary else os.fdopen(opened, "w", encoding="utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if replace and target.exists():
            shutil.copymode(target, aside)
        elif not replace:
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # the name is ours, or refused
        aside.replace(target)
    except OSError as error:
        problem = _in_words(target, error)
    else:
        return
    finally:
        with suppress(OSError):
            aside.unlink()
    raise InvalidArgument(option, str(path), problem)


@contextmanager
def shown(consequence: str) -> Iterator[None]:
    """Sees that what is printed here arrives; where it cannot be, or is stopped, says also what follows from that."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        if error.errno == errno.EPIPE:  # the reader of our output has seen enough
            raise
        problem = f"standard output cannot be written ({error.strerror}); {consequence}"
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the command was stopped; {consequence}") from None
    else:
        return
    raise OSError(problem)


def _in_words(target: Path, error: OSError) -> str:
    folder = target.parent
    known = {
        errno.ENOENT: f"there is no directory {folder}; make it first, or name a file elsewhere",
        errno.ENOTDIR: f"{folder} is no directory; name a file elsewhere",
        errno.EISDIR: "it is a directory; name a file in it",
        errno.EEXIST: "a file of that name exists, and is not written over; name a new one",
        errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    }
    known |= dict.fromkeys(
        (errno.EACCES, errno.EPERM, errno.EROFS), f"nothing may be written in {folder}; name a file elsewhere"
    )
    known |= dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT, errno.EFBIG), f"no space is left in {folder}; make some, or name a file elsewhere"
    )
    return known.get(error.errno or 0, f"it cannot be written ({error.strerror}); name a file elsewhere")
