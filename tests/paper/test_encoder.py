"""Q and H_i against a GRU in NumPy."""

from types import ModuleType

import numpy as np
import torch

from rechain.paper.encoder import Encoder, WordVectors
from rechain.paper.features import passage_token_features


def make_encoder(tiny: ModuleType, matches_words: bool = False) -> Encoder:
    torch.manual_seed(1)
    return Encoder(tiny.vectors(), 3, matches_words).eval()


def test_a_known_word_has_its_vector_an_unknown_one_the_mean_of_its_ngrams(tiny: ModuleType) -> None:
    words = WordVectors(tiny.vectors())
    known, unknown, padding = words(torch.tensor([3, 9, 0]), tiny.word_table())
    assert torch.equal(known, tiny.vectors()[3])
    assert torch.allclose(unknown, (words.ngrams.weight[9] + words.ngrams.weight[63]) / 2)
    assert padding.tolist() == [0] * tiny.WIDTH


def test_vectors_are_frozen_and_the_spelling_learns(tiny: ModuleType) -> None:
    words = WordVectors(tiny.vectors())
    words(torch.tensor([3, 9]), tiny.word_table()).sum().backward()
    assert "table" not in dict(words.named_parameters())
    assert words.ngrams.weight.grad[9].abs().sum() > 0


def test_question_and_passages_are_encoded_by_a_bidirectional_gru_of_two_layers(
    tiny: ModuleType, reference: ModuleType
) -> None:
    encoder, batch = make_encoder(tiny), tiny.make_batch()
    asked, read = encoder.question(batch), encoder.passages(batch)
    assert (asked.shape, read.shape) == ((2, 3, 6), (2, 3, 5, 6))
    table = batch.words
    for number, (question, passages) in enumerate(zip(tiny.QUESTIONS, tiny.PASSAGES, strict=True)):
        for words, states in ((question, asked[number]), *zip(passages, read[number], strict=False)):
            inputs = reference.array(encoder.vectors(torch.tensor(words), table))
            expected = reference.bigru(inputs, encoder.gru)
            np.testing.assert_allclose(reference.array(states[: len(words)]), expected, atol=1e-6)


def test_exact_match_features_stand_behind_the_vectors(tiny: ModuleType, reference: ModuleType) -> None:
    encoder, batch = make_encoder(tiny, matches_words=True), tiny.make_batch()
    vectors = encoder.vectors(batch.passages[0, 2, :4], batch.words)
    inputs = torch.cat([vectors, passage_token_features(batch)[0, 2, :4]], dim=-1)
    expected = reference.bigru(reference.array(inputs), encoder.gru)
    np.testing.assert_allclose(reference.array(encoder.passages(batch)[0, 2, :4]), expected, atol=1e-6)


def test_padding_has_no_state_and_changes_none(tiny: ModuleType) -> None:
    encoder, batch = make_encoder(tiny, matches_words=True), tiny.make_batch()
    alone = tiny.make_batch(
        *([one[1]] for one in (tiny.QUESTIONS, tiny.PASSAGES, tiny.TITLES, tiny.MENTIONS)), [[(0, 1)]]
    )
    read = encoder.passages(batch)
    assert torch.allclose(read[1, 0, :2], encoder.passages(alone)[0, 0, :2], atol=1e-6)
    assert torch.allclose(encoder.question(batch)[1, :2], encoder.question(alone)[0], atol=1e-6)
    assert read[1, 0, 2:].eq(0).all()
    assert read[1, 2].eq(0).all()


def test_dropout_is_for_training_alone(tiny: ModuleType) -> None:
    encoder, batch = make_encoder(tiny).train(), tiny.make_batch()
    assert not torch.equal(encoder.question(batch), encoder.question(batch))
    encoder.eval()
    assert torch.equal(encoder.question(batch), encoder.question(batch))


def test_every_weight_learns_from_passages_of_different_lengths(tiny: ModuleType) -> None:
    encoder = make_encoder(tiny, matches_words=True)
    encoder.passages(tiny.make_batch()).square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in encoder.parameters())
