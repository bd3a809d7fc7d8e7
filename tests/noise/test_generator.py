"""The generator: uniform, never the same twice, not across threads, processes, keys or copies."""

from __future__ import annotations

import copy
import os
import pickle
import random
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy.special import bdtr, chdtrc

from discreet.errors import DiscreetError, InvalidArgument
from discreet.noise import Generator, SecureGenerator, secure_generator
from discreet.noise.generator import BUFFER_WORDS, BYTES_PER_KEY, FEW_WORDS, chosen_generator
from discreet.noise.testing import SeededGenerator

pytestmark = pytest.mark.system_keys
ALPHA = 1e-9


def p_value_of_bytes(words: np.ndarray) -> float:
    """Chi-square of the bytes against uniform."""
    seen = np.bincount(words.view(np.uint8), minlength=256)
    expected = seen.sum() / 256
    return float(chdtrc(255, ((seen - expected) ** 2 / expected).sum()))


def p_value_of_bits(words: np.ndarray, share: float = 0.5) -> float:
    """The smallest two-sided binomial p-value over the 64 bits, corrected for their number."""
    bits = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1).sum(axis=0)
    tails = [min(bdtr(int(b), len(words), share), 1 - bdtr(int(b) - 1, len(words), share)) for b in bits]
    return min(1.0, 128 * min(tails))


@pytest.mark.parametrize("n", [0, 1, 2, FEW_WORDS, FEW_WORDS + 1, 1000, BYTES_PER_KEY // 8 + 1, 3 * BYTES_PER_KEY // 8])
def test_words_have_the_right_number_and_type_and_none_is_seen_twice(n: int) -> None:
    words = SecureGenerator().words(n)
    assert words.shape == (n,)
    assert words.dtype == np.uint64
    assert len(np.unique(words)) == n  # a repeat among 4e5 words has probability 4e-9, a repeated key repeats them all
    assert words.flags.writeable


def test_bytes_and_bits_are_uniform_and_the_test_would_see_a_bias() -> None:
    words = SecureGenerator().words(200_000)
    assert p_value_of_bytes(words) > ALPHA
    assert p_value_of_bits(words) > ALPHA
    biased = words | (SecureGenerator().words(200_000) & SecureGenerator().words(200_000)) >> np.uint64(63)
    assert p_value_of_bits(biased) < ALPHA
    few = words.copy()
    few.view(np.uint8)[::100] = 7
    assert p_value_of_bytes(few) < ALPHA


def test_single_words_are_uniform_too() -> None:
    generator = SecureGenerator()
    words = np.array([generator.word() for _ in range(20_000)], dtype=np.uint64)
    assert len(np.unique(words)) == len(words)
    assert p_value_of_bytes(words) > ALPHA
    assert p_value_of_bits(words) > ALPHA


def test_words_that_were_handed_out_are_overwritten() -> None:
    generator = SecureGenerator()
    drawn = [generator.word() for _ in range(10)] + generator.words(20).tolist()
    left = generator._buffer
    assert not left[:30].any()
    assert left[30:].all()
    assert not set(drawn) & set(left.tolist())


@pytest.mark.parametrize("bits", [0, 1, 2, 7, 63, 64, 65, 128, 1000])
def test_integers_fill_their_range_and_no_more(bits: int) -> None:
    generator = SecureGenerator()
    drawn = [generator.integer(bits) for _ in range(200)]
    assert all(0 <= value < 1 << bits for value in drawn)
    if bits:
        assert max(drawn) >= (1 << bits) * 7 // 8 or bits < 3
        for bit in {0, bits // 2, bits - 1}:
            assert {value >> bit & 1 for value in drawn} == {0, 1}  # wrong once in 2^199


@pytest.mark.parametrize("bits", [-1, 1.5, "8", None, True, 1 << 40])
def test_a_wrong_number_of_bits_is_refused(bits: object) -> None:
    with pytest.raises(InvalidArgument, match="bits = "):
        secure_generator().integer(bits)  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [-1, 1.5, "8", None, True, 10**18, 10**30])
def test_a_wrong_number_of_words_is_refused(n: object) -> None:
    with pytest.raises(InvalidArgument, match="n = "):
        secure_generator().words(n)  # type: ignore[arg-type]


def test_the_generator_of_the_process_is_one() -> None:
    assert secure_generator() is secure_generator() is chosen_generator(None)


def test_a_key_is_never_used_for_more_than_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[int] = []
    original = os.urandom
    monkeypatch.setattr(os, "urandom", lambda n: keys.append(n) or original(n))
    SecureGenerator().words(5 * BYTES_PER_KEY // 8 + 1)
    assert keys == [32] * 6
    keys.clear()
    generator = SecureGenerator()
    for _ in range(3 * BUFFER_WORDS):
        generator.word()
    assert keys == [32] * 3


def test_a_forked_child_draws_other_words_than_its_parent() -> None:
    generator = secure_generator()
    generator.word()  # the buffer is part full: without care the child would repeat it
    reader, writer = os.pipe()
    child = os.fork()
    if not child:  # pragma: no cover - the other process
        os.write(writer, b"".join(generator.word().to_bytes(8, "little") for _ in range(100)))
        os._exit(0)
    os.waitpid(child, 0)
    theirs = set(np.frombuffer(os.read(reader, 800), dtype="<u8").tolist())
    os.close(reader)
    os.close(writer)
    ours = {generator.word() for _ in range(100)}
    assert len(ours) == len(theirs) == 100
    assert not ours & theirs


def test_a_fork_that_python_does_not_see_is_noticed_by_the_process_number() -> None:
    generator = SecureGenerator()
    generator.word()
    waiting = set(generator._buffer.tolist())
    generator._process = -1
    assert generator.word() not in waiting
    assert not waiting & set(generator.few(50).tolist())
    assert generator._process == os.getpid()


def test_a_child_forked_while_another_thread_holds_the_lock_does_not_hang() -> None:
    generator = SecureGenerator()
    with generator._lock:
        child = os.fork()
        if not child:  # pragma: no cover - the other process
            generator.word()
            os._exit(7)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7


def test_threads_never_receive_the_same_word() -> None:
    generator = SecureGenerator()
    drawn: list[list[int]] = [[] for _ in range(8)]

    def draw(mine: list[int]) -> None:
        for _ in range(1500):
            mine.append(generator.word())
            mine.extend(generator.words(2).tolist())

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=draw, args=(mine,)) for mine in drawn]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    together = [word for mine in drawn for word in mine]
    assert len(together) == len(set(together)) == 8 * 1500 * 3
    assert 0 not in together  # a word that was overwritten before it was read


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_secure_generator_cannot_be_copied(copied: object) -> None:
    with pytest.raises(InvalidArgument, match="never copied"):
        copied(SecureGenerator())  # type: ignore[operator]


@pytest.mark.parametrize(
    "generator", [np.random.default_rng(1), np.random.RandomState(1), random.Random(1), 42, "seed", np.random]
)
def test_predictable_generators_are_refused_with_advice(generator: object) -> None:
    with pytest.raises(InvalidArgument, match=r"generator = .*leave it out.*SeededGenerator"):
        chosen_generator(generator)


def test_the_seeded_generator_repeats_itself_whatever_the_pieces() -> None:
    one, other = SeededGenerator(5), SeededGenerator(5)
    pieces = np.concatenate([one.words(3), [np.uint64(one.word())], one.words(0), one.words(500)])
    assert pieces.tolist() == other.words(504).tolist()
    assert SeededGenerator(6).words(3).tolist() != SeededGenerator(5).words(3).tolist()
    assert isinstance(one, Generator)
    assert p_value_of_bytes(SeededGenerator(7).words(10_000)) > ALPHA


def test_an_integer_of_the_seeded_generator_is_its_words_in_order() -> None:
    low, high = SeededGenerator(1).words(2).tolist()
    assert SeededGenerator(1).integer(128) == high << 64 | low
    assert SeededGenerator(1).integer(10) == low >> 54


def test_a_seeded_generator_cannot_be_made_outside_a_test_run() -> None:
    code = "from discreet.noise.testing import SeededGenerator; SeededGenerator(1)"
    for extra, setting in [("", {"PYTEST_VERSION": "8"}), ("import pytest;", {})]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")} | setting
        done = subprocess.run(
            [sys.executable, "-c", extra + code], capture_output=True, text=True, check=False, env=environment
        )
        assert done.returncode == 1
        assert "production noise is never seeded" in done.stderr


@pytest.mark.parametrize("seed", [-1, 0.5, "x", None])
def test_a_seed_is_a_whole_number(seed: object) -> None:
    with pytest.raises(DiscreetError, match="seed = "):
        SeededGenerator(seed)  # type: ignore[arg-type]
