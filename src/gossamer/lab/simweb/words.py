"""Words: the text of which pages are made; drawn once per web, sliced per page."""

from __future__ import annotations

import random

SENTENCES = 6_144
WINDOW = 4_096
"""Slices begin below this; the rest is room for the longest."""
ANCHORS = 1_024

_WORDS = tuple(
    """
    ability able about above account across action address afternoon again air almost alone along already although
    amber among amount anchor ancient animal answer apple april archive area argument around arrow article aspect
    autumn average balance ballad bank barley basket beach before began behind bell below beside between bird
    blanket blue board boat body border bottle boundary branch bread bridge brief bright broad bronze brother brown
    build burning cabin calendar canal candle canvas carbon careful carry castle cedar century certain chamber
    change chapter choice circle citizen clay clear climate clock cloud coast cobalt collar colour column common
    compass copper corner cotton council country course cover cradle crane crystal current curtain custom daily
    danger daughter dawn decade degree delta desert detail dialect dinner direct distance doctor double dragon dream
    drift early earth eastern echo effect eight either element ember empty engine enough equal escape evening event
    every evidence exact example fabric factor family famous farmer father feather fellow fence fever field figure
    final finger fire flag flame flint floor flower follow forest forget formal fortune forward fossil four frame
    freedom fresh friend front frost future gallery garden gather general gentle giant glacier glass golden grain
    granite gravel great green ground group growth guard guide habit hammer harbour harvest hazel heavy hidden high
    history hollow honest horizon horse hundred hunter island ivory journal journey justice kettle kind kingdom
    kitchen knowledge ladder lake language lantern large later leather ledger level liberty library light limit
    linen liquid little local lower lumber machine magnet main manner marble margin market master matter meadow
    measure memory mercy message metal middle mill mineral minute mirror modern moment monday month morning mother
    motion mountain music narrow nation nature nearly needle network never night north notice number oak object
    ocean october office often older olive open orange orbit orchard order other outer paper parcel parent passage
    past patient pattern pebble people pepper period permit picture pillar plain planet plenty pocket poem point
    polar pottery power present pretty price prince print problem process profit promise proof public purple quarter
    question quiet rail rain rather reason record region relay remain reply report rest return ribbon rice ridge
    river rocket room root rough round route royal rule saddle sailor salt sample sand savage scale school season
    second secret section seed senate separate series service settle seven shadow shelter shine shore short shoulder
    signal silent silver simple single sister sketch slow small smoke snow social soil solid someone song sound
    source south spare speech spider spirit spring square stable stage start state station steady steel stone storm
    story straight strange stream street strong study subject sudden sugar summer supply surface swallow system
    table tailor tea temple tenant tender theory thick thousand thread thunder timber today together tomorrow tower
    trade travel treaty tribe trouble truth tunnel twelve under union upper valley value velvet vessel village
    violet voice volume wagon walnut water weather weave western wheat wheel whether white whole willow window
    winter wisdom within wonder wood wool world yellow yesterday young
    """.split()  # noqa: SIM905 (five hundred quoted words read worse)
)


class Words:
    """A long text with known sentence ends, and a stock of anchor texts. About 20 ms to draw, 450 KB."""

    def __init__(self, seed: int) -> None:
        # Chance here must be the same in every process and version: `choices` of a seeded generator is.
        dice = random.Random(seed)
        self.ends: list[int] = [0]
        pieces: list[str] = []
        at = 0
        for _ in range(SENTENCES):
            words = dice.choices(_WORDS, k=6 + int(dice.random() * 12))
            sentence = f"{' '.join(words).capitalize()}. "
            pieces.append(sentence)
            at += len(sentence)
            self.ends.append(at)
        self.text = "".join(pieces)
        self.sentence_bytes = at / SENTENCES
        self.anchors = tuple(" ".join(dice.choices(_WORDS, k=1 + int(dice.random() * 3))) for _ in range(ANCHORS))

    def some(self, at: int, sentences: int) -> str:
        """Return sentences from a place that `at` names."""
        start = at % WINDOW
        return self.text[self.ends[start] : self.ends[min(start + sentences, SENTENCES)]]
