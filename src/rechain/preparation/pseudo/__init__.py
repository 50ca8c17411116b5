"""Pseudo questions: made from passages with links alone, to pretrain models before they see real questions."""

from rechain.preparation.pseudo.making import PseudoMaker, make_pseudo_questions
from rechain.preparation.pseudo.settings import PseudoQuestion, PseudoSettings

__all__ = ["PseudoMaker", "PseudoQuestion", "PseudoSettings", "make_pseudo_questions"]
