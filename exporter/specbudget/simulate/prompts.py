"""Prompts of the simulated clients: three kinds of traffic, some in other scripts, a few very long."""

from __future__ import annotations

import numpy as np

CHARACTERS_PER_TOKEN = 4

SYSTEM_PROMPTS = {
    "chat": "You are a helpful assistant. Answer plainly, say what you do not know, and keep to the question. ",
    "code": "You are a careful programmer. Write complete, tested code and explain each decision briefly. ",
    "math": "You solve problems step by step and give the final answer on a line of its own. ",
}
OTHER_SYSTEM_PROMPT = "You follow the instructions of the user. "

QUESTIONS = (
    "Summarise the meeting notes below in five sentences and list the open decisions.",
    "Write a function that merges overlapping intervals and returns them in order.",
    "A train leaves at 09:40 and covers 312 km at 96 km/h. When does it arrive?",
    "Why does this query scan the whole table, and which index would help?",
    "Draft a polite reply that declines the invitation and proposes a date in March.",
    "Prove that the sum of two even integers is even, then generalise.",
    "Explain what a bloom filter answers wrongly, and how often.",
    "Translate the paragraph into plain English and keep the numbers.",
)
OTHER_SCRIPTS = (
    "请用三句话解释投机解码，并给出一个例子 🚀",
    "Подведи итог разговора и перечисли открытые вопросы — коротко.",
    "اشرح كيف تعمل ذاكرة التخزين المؤقت \u202b(KV)\u202c باختصار.",
    "Résume « l’essentiel » en français : coûts, délais, risques… ✅",
    "次の文章を要約してください。数字はそのまま残すこと。\n\t「納期は三月」",
    'Einzeiler mit "Anführungszeichen", \\ Gegenstrich und \x00 Nullzeichen',
)
FILLER = (
    "The committee reviewed the quarterly figures and asked for a breakdown by region. ",
    "def total(rows): return sum(row.amount for row in rows if row.state == 'open'). ",
    "Let x be the smallest positive root; then the sequence converges monotonically. ",
    "The customer reports that the upload stops at ninety percent on slow connections. ",
)


def system_prompt(profile: str) -> str:
    """The prefix that all requests of a profile share."""
    return SYSTEM_PROMPTS.get(profile, OTHER_SYSTEM_PROMPT) * 8


def prompt_text(generator: np.random.Generator, profile: str, *, tokens: int, other_script: bool) -> str:
    """A prompt of about `tokens` tokens that begins with the profile's system prompt."""
    head = system_prompt(profile)
    pool = OTHER_SCRIPTS if other_script else QUESTIONS
    question = pool[int(generator.integers(len(pool)))]
    missing = tokens * CHARACTERS_PER_TOKEN - len(head) - len(question)
    filler = FILLER[int(generator.integers(len(FILLER)))]
    body = filler * (missing // len(filler)) if missing > 0 else ""
    return f"{head}{body}{question}"
