"""Words of English, German and Spanish that are counted rather than invented: articles, prepositions and the
like. What kind of word stands last tells whether more is to come, also for words no head was shown."""

from __future__ import annotations

_TABLE = {
    "article": "the a an every each der die das den dem des ein eine einen einem einer eines kein keine"
    " keinen keinem keiner el la los las un una unos unas ningún cada algún alguna",
    "owner": "my your his our their its mein meine meinen meinem meiner dein deine deinen deinem deiner"
    " sein seine seinen seinem seiner ihr ihre ihren ihrem ihrer unser unsere unseren euer eure"
    " mi mis tu tus su sus nuestro nuestra nuestros nuestras",
    "pointer": "this that these those some any dieser diese dieses diesen diesem jeder jede jedes jeden"
    " jedem este esta estos estas ese esa esos esas aquel aquella otro otra otros otras",
    "place": "of for from with at by into than per to between during without against towards since until"
    " under near behind von für mit bei bis nach zu zum zur im am vom beim seit wegen ohne gegen durch"
    " zwischen unter über neben hinter vor um aus de del al a con sin para por en entre hasta desde"
    " sobre bajo tras según contra hacia",
    "particle": "in on off up down out over about through around after before back an auf ab ein aus vor"
    " mit nach weg zurück los",
    "and": "and or but und oder aber sondern denn y e o u pero sino ni nor",
    "because": "because if whether when while as although though unless that so weil wenn dass ob als"
    " obwohl damit bevor nachdem während sobald falls que si porque cuando aunque mientras como pues",
    "is": "is are was were am be been being isn't aren't wasn't i'm it's he's she's they're we're"
    " bin bist ist sind war waren wäre sei es son era eran soy eres somos está están estoy estás"
    " estaba fue fueron sea",
    "can": "will would can could should shall must may might let won't can't couldn't shouldn't"
    " kann kannst können könnte könntest muss musst müssen soll sollte sollen will willst wollen möchte"
    " darf wird werden würde würdest puedo puedes puede pueden podría podrías debo debe debería voy va"
    " vas vamos quiero quieres quiere quería iba",
    "have": "has had have having hasn't haven't hat hatte habe hast haben hatten he has ha hemos han"
    " había hay",
    "do": "do does did don't doesn't didn't doing done",
    "i": "i we they he she you it me him them us ich du er sie es wir ihr man mich dich ihn ihm ihnen uns"
    " mir dir sich yo tú él ella nosotros ellos ellas me te se nos le les lo",
    "what": "what which who whom whose how where why was wer wen wem wessen wie wo wohin woher wann warum"
    " welche welcher welches welchen welchem qué quién cuál cuáles cómo dónde cuándo cuánto cuánta"
    " cuántos cuántas",
    "much": "very too quite rather more most much many almost only also just even sehr zu ziemlich mehr"
    " viel viele fast nur auch noch sogar muy más mucho mucha muchos muchas casi solo también tan",
    "not": "not never no nicht nie niemals nunca tampoco ya",
    "please": "please thanks thank bitte danke gracias favor again now today tomorrow yesterday later here"
    " there jetzt heute morgen gestern später hier da dort wieder ahora hoy mañana ayer luego aquí"
    " allí",
    "er": "um uh er erm hmm hm ähm äh hm eh este em",
}
KINDS: dict[str, tuple[str, ...]] = {}
for _kind, _words in _TABLE.items():
    for _word in _words.split():
        KINDS[_word] = (*KINDS.get(_word, ()), _kind)
OTHER = ("open",)


def kinds(word: str) -> tuple[str, ...]:
    """The kinds of a lower-case word; OTHER for nouns, verbs, names and the like, ("number",) for "0"."""
    return ("number",) if word == "0" else KINDS.get(word, OTHER)
