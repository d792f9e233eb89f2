"""One safetensors file for arrays and a JSON header: models and snapshots. Nothing in it can run code.

>>> data = pack_container("netclust.example", {"w": np.arange(3.0)}, {"note": "hello"})
>>> arrays, header = unpack_container(data, "netclust.example", "example")
>>> arrays["w"].tolist(), header
([0.0, 1.0, 2.0], {'note': 'hello'})
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError, ModelError

FORMAT_VERSION = 1
MAX_BYTES = 1 << 31
MAX_HEADER = 100_000_000  # as safetensors has it
_KEY = "netclust"

Arrays = dict[str, NDArray[Any]]


class _Envelope(msgspec.Struct):
    """Around every header. A later format may add to it: the version is what decides."""

    kind: str
    version: int
    header: dict[str, Any]


def pack_container(kind: str, arrays: Arrays, header: Any) -> bytes:
    """Return the bytes of a container; `header` is anything that msgspec turns into a JSON object."""
    from safetensors.numpy import save

    envelope = {"kind": kind, "version": FORMAT_VERSION, "header": header}
    text = msgspec.json.encode(envelope).decode()
    whole: bytes = save({name: np.ascontiguousarray(a) for name, a in arrays.items()}, metadata={_KEY: text})
    return whole


def parts(kind: str, arrays: Arrays, header: Any) -> Iterator[bytes | memoryview]:
    """The same content as `pack_container` (in another order) bit by bit: nothing is copied, and nobody waits for it.

    >>> data = b"".join(parts("netclust.example", {"w": np.arange(6.0).reshape(2, 3)}, {}))
    >>> unpack_container(data, "netclust.example", "example")[0]["w"].tolist()
    [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    """
    names = {np.dtype(kind): code for code, kind in _DTYPES.items()}
    text = msgspec.json.encode({"kind": kind, "version": FORMAT_VERSION, "header": header}).decode()
    entries: dict[str, Any] = {"__metadata__": {_KEY: text}}
    end = 0
    for name, array in arrays.items():
        entries[name] = {
            "dtype": names[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [end, end + array.nbytes],
        }
        end += array.nbytes
    head = msgspec.json.encode(entries)
    head += b" " * (-len(head) % 8)
    yield len(head).to_bytes(8, "little") + head
    for array in arrays.values():
        for row in array if array.ndim > 1 else [array]:
            if row.size:
                yield np.ascontiguousarray(row).view(np.uint8).data


def container_kind(path: str | Path) -> str | None:
    """Return the kind that a file says it holds, None if it is no file of ours. Nothing else of it is read."""
    try:
        with open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            head = file.read(size) if size <= MAX_HEADER else b""
        text = msgspec.json.decode(head, type=dict[str, Any]).get("__metadata__", {}).get(_KEY, "")
        return msgspec.json.decode(text, type=_Envelope).kind
    except (OSError, msgspec.DecodeError, AttributeError, TypeError, UnicodeDecodeError, RecursionError):
        return None


def unpack_container(data: bytes, kind: str, where: str) -> tuple[Arrays, dict[str, Any]]:
    """Return arrays (writable, contiguous) and header, or raise a `ModelError` that says what is wrong."""
    import safetensors

    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > len(data) - 8:
        raise ModelError(f"{where}: not a netclust file, or cut short")
    try:
        metadata = msgspec.json.decode(data[8 : 8 + size], type=dict[str, Any]).get("__metadata__", {})
        text = metadata.get(_KEY) if isinstance(metadata, dict) else None
        if not isinstance(text, str):
            raise ModelError(f"{where}: a safetensors file, but not one of netclust's")
        envelope = msgspec.json.decode(text, type=_Envelope)
        if envelope.version > FORMAT_VERSION:
            raise ModelError(
                f"{where}: written in format {envelope.version}, this netclust reads up to {FORMAT_VERSION}: upgrade it"
            )
        if envelope.version < 1:
            raise ModelError(f"{where}: format {envelope.version} is not known, make the file anew")
        if envelope.kind != kind:
            raise ModelError(f"{where}: holds {envelope.kind!r}, expected {kind!r}")
        tensors = _tensors(data)
    except (msgspec.DecodeError, safetensors.SafetensorError, UnicodeDecodeError, RecursionError) as error:
        raise ModelError(f"{where}: corrupt ({error})") from None
    return {name: _array(info, f"{where}: {name}") for name, info in tensors}, envelope.header


def _tensors(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    import safetensors

    untyped: Any = safetensors
    found: list[tuple[str, dict[str, Any]]] = untyped.deserialize(data)
    return found


_DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "I64": "<i8",
    "I32": "<i4",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}


def _array(info: dict[str, Any], where: str) -> NDArray[Any]:
    """A copy of one tensor, so that it is aligned, contiguous and writable."""
    if info["dtype"] not in _DTYPES:
        raise ModelError(f"{where} has type {info['dtype']}, which netclust does not use")
    return np.frombuffer(info["data"], np.dtype(_DTYPES[info["dtype"]])).reshape(info["shape"]).copy()


def require_array(arrays: Arrays, name: str, dtype: Any, shape: tuple[int | None, ...], where: str) -> NDArray[Any]:
    """Return one array after checking its type, its shape (None: any length), and that numbers are finite."""
    array = arrays.get(name)
    if array is None:
        raise ModelError(f"{where}: has no {name}")
    fits = array.ndim == len(shape) and all(want in (None, got) for want, got in zip(shape, array.shape, strict=True))
    if array.dtype != np.dtype(dtype) or not fits:
        raise ModelError(
            f"{where}: {name} is {array.dtype}{list(array.shape)}, expected {np.dtype(dtype)}{list(shape)}"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ModelError(f"{where}: {name} holds a number that is not finite")
    return array


def read_container_bytes(path: str | Path, limit: int = MAX_BYTES) -> bytes:
    """Read the bytes of a file that is not larger than `limit`."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > limit:
                raise ModelError(f"{path}: larger than {limit} bytes, refused")
            data = file.read(limit + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    if len(data) > limit:
        raise ModelError(f"{path}: larger than {limit} bytes, refused")
    return data


def write_container_bytes(path: str | Path, data: bytes) -> None:
    """Write a file in one step: readers see the old one or the new one, never half.

    Links are followed; a device or a pipe is written to, not replaced.
    """
    write_container_parts(path, [data])


def write_container_parts(path: str | Path, content: Iterable[bytes | memoryview]) -> None:
    """Write a file in one step, like `write_container_bytes`, from content that comes in parts."""
    try:
        target = Path(os.path.realpath(path))
        if target.exists() and not (target.is_file() or target.is_dir()):
            target.write_bytes(b"".join(content))
            return
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                for part in content:
                    file.write(part)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
