"""A table of order texts as people write them: each is read as what it says, or refused."""

import pytest

from diplomacy_engine.errors import UserError
from diplomacy_engine.textgame.game import Game

STATES = {
    "M": {
        "name": "S1901M",
        "units": {
            "FRANCE": ["A PAR", "A MAR", "F MAO", "F GAS", "F BRE"],
            "ENGLAND": ["A LON", "F NTH", "F ENG", "A YOR"],
            "GERMANY": ["A MUN", "A BUR", "A RUH"],
            "RUSSIA": ["F STP/NC", "F BOT"],
        },
    },
    "R": {
        "name": "S1902R",
        "units": {"FRANCE": ["A MUN", "A BUR"], "GERMANY": []},
        "retreats": {"GERMANY": {"*A MUN": ["RUH", "SIL"]}},
        "centers": {"GERMANY": ["BER"], "FRANCE": ["PAR", "MUN"]},
    },
    "W": {
        "name": "W1902A",
        "units": {"FRANCE": ["A BUR"], "ITALY": ["A TYR", "F ION", "A ROM"], "RUSSIA": ["A MOS"]},
        "centers": {
            "FRANCE": ["PAR", "BRE", "MAR"],
            "ITALY": ["ROM"],
            "RUSSIA": ["STP", "MOS", "SEV"],
        },
    },
}
# order -> the texts that say it, in the phase and of the power that come before it
READ = {
    ("M", "FRANCE", "A PAR - PIC"): [
        "A PAR - PIC",
        "A Par Pic",
        "A PAR m PIC",
        "A PAR mv PIC",
        "A PAR move PIC",
        "A PAR M-PIC",
        "move A PAR PIC",
        "move par to pic",
        "move paris picardy",
        "Move army from Paris to Picardy",
        "m par pic",
        "A PAR -PIC",
        "A PAR--PIC",
        "A PAR ->PIC",
        "A PAR > PIC",
        "A PAR MTO PIC",
        "Paris army to Picardy",
        "A Paris attacks Picardy",
        "A PAR goes to PIC",
        "AMY PAR MTO PIC",
    ],
    ("M", "FRANCE", "A PAR H"): [
        "A PAR h",
        "hold A PAR",
        "hold par",
        "A PAR hld",
        "A PAR (hold)",
        "A PAR stays",
        "A PAR - hold",
        "A PAR = H",
        "A PAR holding",
        "A PAR: hold",
    ],
    ("M", "FRANCE", "F GAS S F BRE"): [
        "F GAS sh BRE",
        "F GAS sh F BRE",
        "F GAS support hold bre",
        "gas support hold bre",
        "F GAS supports hold F BRE",
        "F GAS support F BRE hold",
        "F GAS supports F BRE holding",
        "F GAS s-h BRE",
        "F GAS sup BRE",
        "F GAS S BRE H",
        "F GAS supports hold of BRE",
    ],
    ("M", "FRANCE", "F GAS S F MAO - BRE"): ["F GAS sm MAO BRE"],
    ("M", "FRANCE", "A PAR S A MAR - BUR"): [
        "A PAR sm MAR BUR",
        "A PAR sm A MAR - BUR",
        "A PAR support move MAR BUR",
        "A PAR support move mar to bur",
        "A PAR s MAR BUR",
        "A PAR supports A MAR into BUR",
        "A PAR support A MAR m BUR",
        "A PAR supports Mar's move to Bur",
        "A PAR S Mar-Bur",
        "A PAR supports the move of A MAR to BUR",
        "A PAR S A MAR attack BUR",
    ],
    ("M", "ENGLAND", "A LON - BEL VIA"): [
        "A Lon - Bel via NTH",
        "A Lon - Bel (via NTH)",
        "A Lon - Bel via F NTH",
        "A Lon - Bel by convoy",
        "A Lon - Bel VIA CONVOY",
        "A Lon - NTH - Bel",
        "A Lon - Bel convoyed by F NTH",
        "A Lon - Bel (convoy)",
        "A LON CTO BEL VIA NTH",
        "A Lon via NTH to Bel",
        "A Lon - Bel through NTH",
        "A Lon - Bel via c",
    ],
    ("M", "ENGLAND", "A LON - YOR VIA"): ["A Lon - Yor via NTH"],
    ("M", "ENGLAND", "A LON - HOL VIA"): ["A Lon - Hol via NTH-ENG"],
    ("M", "ENGLAND", "F NTH C A LON - BEL"): [
        "F NTH C LON-BEL",
        "F NTH C LON BEL",
        "F NTH convoy lon bel",
        "F NTH convoys army in London to Belgium",
        "nth convoy A Lon to Bel",
        "F NTH CVY A LON CTO BEL",
        "F NTH convoys LON > BEL",
    ],
    ("M", "FRANCE", "F MAO - SPA/NC"): [
        "F MAO SPA-NC",
        "F MAO - SPA-NC",
        "F MAO-SPA-NC",
        "F MAO - SPA nc",
        "F MAO - SPA.NC",
        "F MAO - SPA:NC",
        "F MAO - SPA_NC",
        "F MAO - SPA (north)",
        "F MAO - SPA(n)",
        "F MAO - SPA/N",
        "F MAO - Spain/north coast",
        "F MAO - SPA NCS",
        "F MAO - Spain, north coast",
    ],
    ("M", "FRANCE", "F GAS - SPA/NC"): ["F GAS - SPA"],
    ("M", "RUSSIA", "F STP/NC - NWY"): ["F STP-NC - NWY", "F STP nc - NWY"],
    ("M", "FRANCE", "A PAR S A BUR"): ["A PAR S German A BUR", "A PAR S Germany's A BUR"],
    ("M", "FRANCE", "F BRE H"): ["FLT BRE HLD"],
    ("R", "GERMANY", "A MUN R RUH"): [
        "A MUN R RUH",
        "retreat mun ruh",
        "retreat A MUN - RUH",
        "retreat A MUN to RUH",
        "retreat mun to ruh",
        "A MUN retreats RUH",
        "A MUN ret RUH",
        "A MUN - RUH",
        "MUN R RUH",
        "*A MUN - RUH",
        "A MUN RTO RUH",
        "A MUN RUH",
        "A MUN retreat to RUH",
    ],
    ("R", "GERMANY", "A MUN D"): [
        "A MUN D",
        "disband A MUN",
        "disband mun",
        "A MUN disbanded",
        "A MUN - disband",
        "A MUN destroyed",
        "A MUN OTB",
        "A MUN retreats OTB",
        "A MUN DSB",
        "A MUN retreat: disband",
        "D A MUN",
    ],
    ("W", "FRANCE", "A PAR B"): [
        "build A PAR",
        "build paris army",
        "build army paris",
        "builds an army in Paris",
        "B A PAR",
        "A PAR B",
        "A PAR BLD",
        "A PAR build",
        "new army in Paris",
        "build A(PAR)",
        "build Paris (army)",
        "build par a",
        "Build: A PAR",
        "+A PAR",
        "+ A PAR",
        "army in Paris built",
        "A PAR built",
    ],
    ("W", "RUSSIA", "F STP/NC B"): [
        "build F STP-NC",
        "build fleet st petersburg nc",
        "build stp/nc fleet",
    ],
    ("W", "ITALY", "A TYR D"): [
        "remove A TYR",
        "removes tyr",
        "-A TYR",
        "- A TYR",
        "A TYR removed",
        "D A TYR",
        "disbands A TYR",
        "A TYR REM",
        "remove army tyrolia",
        "remove tyrolia army",
        "destroy A TYR",
    ],
    ("W", "FRANCE", "WAIVE"): ["waive", "waives one build", "1 build waived", "WVE", "waive build"],
}
REFUSED = {
    ("M", "FRANCE"): [
        "par pic",
        "A PAR ~ PIC",
        "A PAR advances to PIC",
        "A PAR -",
        "A PAR remains in place",
        "A MAR sh PAR",
        "F GAS S F BRE - BRE",
        "F GAS holds supporting BRE",
        "support A MAR - BUR from PAR",
        "F MAO - SPANC",
        "F MAO - Spain n.c.",
        "F MAO - north coast of Spain",
        "A PAR supports GER A BUR",
        "Fr A PAR - PIC",
        "(FRA AMY PAR) MTO PIC",
        "A PAR - PIC or A PAR - GAS",
        "A PAR - PIC?",
        "do not move A PAR - PIC",
        "A PAR not - PIC",
        "A PAR - PIC, else hold",
        "A PAR ← PIC",
        "A PAR S A MAR - BUR - MUN",
        "A PAR PIC BUR",
        "A PAR - PIC BUR",
        "A PAR F BRE",
    ],
    ("M", "ENGLAND"): [
        "A Lon convoys to Bel",
        "F NTH convoys A Lon from Lon to Bel",
        "convoy A LON - BEL",
    ],
    ("M", "GERMANY"): ["A RUH-H)OL", "A RUH - HOL) OR KIE"],
    ("R", "GERMANY"): ["A MUN dislodged - RUH"],
    ("W", "RUSSIA"): ["build F STP", "build STP"],
    ("W", "FRANCE"): ["build nothing", "pass"],
}


def submitted(phase, power, text):
    game = Game.from_state("standard", STATES[phase])
    game.submit(power, [text])
    return game.orders[power]


@pytest.mark.parametrize(
    ("phase", "power", "order", "text"),
    [(*key, text) for key, texts in READ.items() for text in texts],
)
def test_a_form_of_an_order(phase, power, order, text):
    assert submitted(phase, power, text) == [order]


@pytest.mark.parametrize(
    ("phase", "power", "text"), [(*key, text) for key, texts in REFUSED.items() for text in texts]
)
def test_what_is_not_clear_is_refused(phase, power, text):
    with pytest.raises(UserError) as error:
        submitted(phase, power, text)
    assert text in str(error.value)
