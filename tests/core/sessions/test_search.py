"""Search finds what was said, in every script, and takes any text for a query."""

from __future__ import annotations

import json

import pytest

SAID = {
    "french": "Réserve une table au café pour l'été",
    "composed": "re\u0301sume\u0301 of the trip",
    "german": "Die Straße nach Köln ist gesperrt",
    "russian": "Напомни мне купить ёлку завтра",
    "greek": "Η Αθήνα είναι ζεστή",
    "japanese": "明日の東京の天気は晴れです。会議は三時から",
    "chinese": "我想去北京大学学习人工智能",
    "korean": "오늘 학교에서 친구를 만났어요",
    "thai": "พรุ่งนี้ฉันจะไปกรุงเทพ",
    "khmer": "ខ្ញុំទៅភ្នំពេញ",
    "hindi": "मुझे हिन्दी पढ़नी है",
    "tamil": "நான் தமிழ் படிக்கிறேன்",
    "arabic": "ذَهَبَ مُحَمَّد إلى المدرسة",
    "hebrew": "שָׁלוֹם עולם",
    "push": "please do NOT push the branch yet",
    "path": "open src/app/main_loop.py:42 and set max-retries: 3",
    "emoji": "party 🎉 tonight",
    "stuck": "thanks❤️you🎂",
}
FOUND = [
    ("reserve ete", "french"),
    ("CAFÉ", "french"),
    ("cafe\u0301", "french"),
    ("resume trip", "composed"),
    ("strasse", None),
    ("straße koln", "german"),
    ("ёлку", "russian"),
    ("ЕЛКУ", "russian"),
    ("αθηνα", "greek"),
    ("東京", "japanese"),
    ("天気", "japanese"),
    ("会議", "japanese"),
    ("京東", None),
    ("北京", "chinese"),
    ("大学", "chinese"),
    ("人工智能", "chinese"),
    ("能", "chinese"),
    ("학교", "korean"),
    ("친구", "korean"),
    ("กรุงเทพ", "thai"),
    ("ភ្នំពេញ", "khmer"),
    ("हिन्दी", "hindi"),
    ("தமிழ்", "tamil"),
    ("محمد", "arabic"),
    ("שלום", "hebrew"),
    ("do NOT push", "push"),
    ('"do NOT push"', "push"),
    ('"push NOT"', None),
    ("NOT", "push"),
    ("push OR nothing", None),
    ("NEAR(push)", None),
    ("main_loop.py:42", "path"),
    ("max-retries: 3", "path"),
    ("max-ret", "path"),
    ("src/app", "path"),
    ("🎉", "emoji"),
    ("❤️", "stuck"),
    ("❤", "stuck"),
    ("🎂", "stuck"),
    ("you", "stuck"),
    ("!?", None),
]


@pytest.fixture
def said(run):
    def test(check, **settings):
        async def with_talk(bench):
            bench.ids = {}
            session = await bench.session()
            for text in SAID.values():
                await bench.say(session, text)
            for message in (await bench.call("session.get", session=session))["messages"]:
                bench.ids[message["id"]] = next(
                    (name for name, text in SAID.items() if text == message["text"]), ""
                )
            bench.talk = session
            await check(bench)

        run(with_talk, **settings)

    return test


def test_every_script_is_found(said):
    async def check(bench):
        wrong = []
        for query, name in FOUND:
            names = [bench.ids[hit["message"]] for hit in await bench.hits(query)]
            if names != ([name] if name else []):
                wrong.append((query, name, names))
        assert wrong == []

    said(check)


ODD = ["", "   ", '"', '""', "''", "*", "a AND", "(", ")", "^x", "x*", "-",
    "a:b:c", "text : push", "{text} : x", "NOT", "\\", "%", "' OR 1=1 --", "\0", "a\0b", "🎉" * 50,
    "a " * 5000, "x" * 10_000, "日" * 5000, '"' * 5000, "NEAR(" * 2000, "\u200d\u2063"]  # fmt: skip


def test_any_text_is_a_safe_query(said):
    async def check(bench):
        for query in ODD:
            assert isinstance(await bench.hits(query), list)

    said(check)


def test_snippets_show_what_matched_and_nothing_of_the_index(said):
    async def check(bench):
        assert (await bench.hits("東京"))[0]["snippet"] == (
            "明日の«東京»の天気は晴れです。会議は三時から"
        )
        assert "«NOT» «push»" in (await bench.hits("push not"))[0]["snippet"]
        assert (await bench.hits("🎉"))[0]["snippet"] == "party «🎉» tonight"
        assert "\u2063" not in json.dumps(await bench.hits("学"), ensure_ascii=False)

    said(check)


def test_tool_calls_and_results_are_found(run):
    async def test(bench):
        (bench.work / "recipe.txt").write_text("two spoons of cardamom\n")
        session = await bench.session()
        bench.model.replies = [[("read_file", {"path": "recipe.txt"})], "Here it is."]
        await bench.say(session, "show me the file")
        assert len(await bench.hits("cardamom")) == 1
        assert "«recipe.txt»" in (await bench.hits("recipe.txt"))[0]["snippet"]
        assert len(await bench.hits("read_file")) == 1

    run(test)


def test_search_keeps_to_its_session_and_limit(run, refused):
    async def test(bench):
        one, two = await bench.session(), await bench.session()
        await bench.say(one, "the blue bicycle", "a blue car")
        await bench.say(two, "the blue bicycle")
        assert {hit["session"] for hit in await bench.hits("blue")} == {one, two}
        assert {hit["session"] for hit in await bench.hits("blue", session=two)} == {two}
        assert len(await bench.hits("blue", limit=1)) == 1
        with pytest.raises(refused, match="bad_body"):
            await bench.hits("blue", limit=0)
        with pytest.raises(refused, match="unknown_session"):
            await bench.hits("blue", session="nope")

    run(test)


def test_the_index_agrees_with_the_texts(said):
    async def check(bench):
        await bench.call("session.undo", session=bench.talk, turns=5)
        with bench.database.transaction() as link:
            link.execute("INSERT INTO search (search, rank) VALUES ('integrity-check', 1)")

    said(check)
