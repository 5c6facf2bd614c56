"""What somebody at a game is shown, as dictionaries for JSON: the state of play, orders, pictures.

Nobody is shown the orders that others have given for the current phase, nor what they talk about:
a seat sees its own offers and deals, and with open press also who else has peace.
"""

import re
from collections.abc import Mapping, Sequence

from ..constants import (
    ARMY,
    BUILD,
    COASTS,
    CONVOY,
    DISBAND,
    HOLD,
    MOVE,
    MOVE_VIA,
    RETREAT,
    SUPPORT_HOLD,
    SUPPORT_MOVE,
    UNIT_LETTERS,
    WAIVE,
    phase_kind,
)
from ..errors import UserError
from ..games.decisions import Decisions
from ..games.position import contenders
from ..pictures.arrows import ORDER_VERBS
from ..pictures.board import board_svg, phase_title
from ..press.daide import ClauseRow
from ..press.deals import Clause, Side
from ..press.game import Game, Offer
from ..replays.replay import Frame, frame_svg, make_replay
from ..rules.map import Map
from ..rules.notation import Place, UnitText, place_text, province_of, read_order
from .file import GUEST, PLAYER, WATCH
from .session import PlaySession, Viewer

TROUBLE = "a player could not go on"  # said to others than the host, whom it is told in full
CANDIDATES = 6  # of those that a search has tried are shown
_COAST_WORDS = dict(zip(COASTS[1:], ("north coast", "east coast", "south coast", "west coast")))


def order_view(game_map: Map, text: str) -> dict:
    """Return what the page needs of a legal order.

    Keys: text; verb (see arrows.ORDER_VERBS); words, the order without its unit, for people; place,
    the province to click for it (where the unit goes, or what is supported there); other, the
    province of the unit that is supported or convoyed, or null.
    """
    order = read_order(game_map, text)
    place = order.target or (order.other.place if order.other else order.unit.place)
    other = order.other and game_map.provinces[order.other.place.province]
    return {
        "text": text,
        "verb": ORDER_VERBS[order.kind],
        "words": _words(game_map, order),
        "place": game_map.provinces[place.province],
        "other": other,
    }


def order_words(game_map: Map, text: str) -> tuple[str, str]:
    """Return an order's unit and the rest in words; no unit and the text if it means nothing."""
    try:
        order = read_order(game_map, text)
    except UserError:
        return "", text
    if order.kind == WAIVE:
        return "", "waive a build"
    if order.kind == BUILD:
        return _name(game_map, order.unit.place), _words(game_map, order)
    unit = _unit(game_map, order.unit)
    return unit[0].upper() + unit[1:], _words(game_map, order)


def in_words(game_map: Map, text: str) -> str:
    """Return a sentence about units with their names in place of texts such as `A PAR`."""

    def name(match: re.Match) -> str:
        kind = "army" if match[1] == UNIT_LETTERS[ARMY] else "fleet"
        place = game_map.province_names.get(match[2])
        return match[0] if place is None else f"{kind} {place}"

    return re.sub(r"\b([AF]) ([A-Z]{3})(?:/[NESW]C)?\b", name, text)


def _words(game_map: Map, order) -> str:
    target = order.target and _name(game_map, order.target)
    other = order.other and _unit(game_map, order.other)
    if order.kind == BUILD:
        _, _, coast = place_text(game_map, order.unit.place).partition("/")
        kind = "army" if order.unit.kind == ARMY else "fleet"
        return f"build {kind}" + (f" ({_COAST_WORDS[coast]})" if coast else "")
    return {
        HOLD: "hold",
        MOVE: f"move to {target}" + (" by convoy" if order.via else ""),
        SUPPORT_HOLD: f"support {other} to hold",
        SUPPORT_MOVE: f"support {other} to {target}",
        CONVOY: f"convoy {other} to {target}",
        RETREAT: f"retreat to {target}",
        DISBAND: "disband",
    }[order.kind]


def _unit(game_map: Map, unit: UnitText) -> str:
    return f"{'army' if unit.kind == ARMY else 'fleet'} {_name(game_map, unit.place)}"


def _name(game_map: Map, place: Place) -> str:
    name = game_map.province_names[game_map.provinces[place.province]]
    coast = place_text(game_map, place).partition("/")[2]
    return name + (f" ({_COAST_WORDS.get(coast, coast.lower())})" if coast else "")


def decision_view(game: Game, power: str) -> dict | None:
    """Return what a power has to order now; None if nothing.

    Keys: kind (`orders`, `retreats`, `builds` or `removals`); count, how many of them; and units, a
    list of {unit, province, name, orders, bound}. For builds a unit is an open home center. `bound`
    lists the powers with whom deals were made that leave the unit fewer orders.
    """
    if game.is_over or power in game.conceded:
        return None
    owed, phase = game.adjustments.get(power, 0), phase_kind(game.phase)
    if phase == "retreats":
        kind, places = "retreats", list(game.dislodged.get(power, {}))
    elif phase == "adjustments":
        kind = "builds" if owed > 0 else "removals"
        places = game.units[power]
        if owed > 0:
            places = game.to_state()["builds"][power]["homes"]
    else:
        kind, places = "orders", game.units[power]
    if not places or (phase == "adjustments" and not owed):
        return None
    bound = partners_bound_to(game, power) if kind == "orders" else {}
    return {
        "kind": kind,
        "count": abs(owed) if phase == "adjustments" else len(places),
        "units": [_place_view(game, place, bound) for place in places],
    }


def partners_bound_to(game: Game, power: str) -> dict[str, list[str]]:
    """Return province -> the powers whose deals take orders from the unit there."""
    if not isinstance(game, Game) or game.press is None:
        return {}
    found = {}
    for province, offers in game.bindings(power).items():
        sides = {name for o in offers for name in (o.sender, o.receiver)}
        found[province] = sorted({game.powers[p] for p in sides} - {power})
    return found


def _place_view(game: Game, place: str, bound: Mapping[str, list[str]]) -> dict:
    province = province_of(place)
    orders = [text for text in game.legal_orders(place) if text != "WAIVE"]
    return {
        "unit": place,
        "province": province,
        "name": game.map.province_names[province],
        "orders": [order_view(game.map, text) for text in orders],
        "bound": bound.get(province, []),
    }


def game_view(session: PlaySession, viewer: Viewer) -> dict:
    """Return everything about a session that a viewer may know, but for the pictures."""
    with session.lock:
        game, seats, you = session.game, session.now.seats, viewer.power
        waiting = session.waiting_for()
        powers = [_power_view(session, viewer, power, waiting) for power in game.powers]
        view = {
            "revision": session.revision,
            "step": session.now.step,
            "game": session.tokens[WATCH][:6] + game.id,  # for what the page remembers
            "map": game.map.name,
            "phase": game.phase,
            "title": phase_title(game.phase),
            "phases": [phase["name"] for phase in game.history] + [game.phase],
            "over": game.is_over,
            "winners": game.winners,
            "draw": game.is_draw,
            "agreed": game.is_agreed,
            "by_concession": game.is_conceded,
            "votes": votes_view(game, you),
            "can_concede": session.can_concede(you),
            "teams": game.map.teams.text,
            "victory": int(game.map.board.victory_centers),
            "last_year": _last_year(game),
            "powers": powers,
            "names": game.map.province_names,
            "started": seats is not None,
            "opponents": [session.told(name, game) for name in session.opponents if viewer.host],
            "choices": list(session.choices) if viewer.host else [],
            "maps": session.maps,
            "before": session.now.before.get(you) if you else None,
            "you": you,
            "host": viewer.host,
            "decision": decision_view(game, you) if you else None,
            "given": game.orders.get(you) if you else None,
            "waiting": waiting,
            "can_hint": session.can_hint() and you is not None,
            "can_go_on": viewer.host and session.can_go_on(),
            "can_take_back": viewer.host and session.can_take_back(),
            "trouble": session.trouble if viewer.host or not session.trouble else TROUBLE,
            "talk": None,
        }
        if session.press is not None and seats is not None and not game.is_over:
            view["talk"] = talk_view(game, you, session.press.open_press)
        if viewer.host:
            view["file"] = str(session.file)
            guests = [power for power in session.people() if seats[power].kind == GUEST]
            view["links"] = {who: session.tokens[who] for who in (*guests, WATCH)}
        return view


def votes_view(game: Game, power: str | None) -> dict | None:
    """Return how the vote for a draw stands; None without one.

    Keys: mine, whether the power has voted for it; given, how many have; needed, how many must. Who
    has, nobody is shown before the phase is over.
    """
    if not game.draw_votes or game.is_over:
        return None
    needed = contenders(game.vector_game, game.conceded)
    return {"mine": power in game.votes, "given": len(game.votes), "needed": len(needed)}


def _last_year(game: Game) -> int | None:
    return game.max_years and int(game.map.board.first_year) + game.max_years - 1


def _power_view(session: PlaySession, viewer: Viewer, power: str, waiting: list[str]) -> dict:
    game, seat = session.game, (session.now.seats or {}).get(power)
    who = None
    if seat is not None:
        who = session.shown(seat.player, viewer) if seat.kind == PLAYER else seat.kind
    return {
        "power": power,
        "player": who,
        "person": seat is not None and seat.kind != PLAYER,
        "centers": len(game.centers[power]),
        "units": len(game.units[power]) + len(game.dislodged.get(power, {})),
        "alive": session.is_alive(power),
        "conceded": power in game.conceded,
        "ready": power not in waiting,
    }


def board_view(session: PlaySession, viewer: Viewer, number: int | None = None) -> dict:
    """Return a phase that was played, with its orders and results; None for the position now.

    Raises:
        UserError: there is no such phase.
    """
    with session.lock:
        game = session.game
        if number is None or number == len(game.history):
            return draft_view(session, viewer, game.orders.get(viewer.power, []))
        if not 0 <= number < len(game.history):
            raise UserError(f"there is no phase {number} in a game of {len(game.history)}")
        replay = make_replay(game.to_saved_game(), game.map)
        lines = _lines(game.map, replay.frames[number])
        known = [
            said
            for said, message in zip(replay.frames[number].talk, game.history[number]["messages"])
            if session.may_hear(viewer, message)
        ]
        known += replay.frames[number].declared
        return _picture(
            game.history[number]["name"], frame_svg(replay, number, legend=False), lines, known
        )


def _lines(game_map: Map, frame: Frame) -> list[dict]:
    """Return the orders of a phase in words, and the units that held without one."""
    unplayed = frame.declared and not frame.outcome  # it ended the game
    lines, moving = [], phase_kind(frame.scene.phase) == "movement" and not unplayed
    without = "hold, without order" if moving else "no order"
    for power in game_map.powers:
        orders, ordered = frame.orders.get(power, ()), set()
        for given in orders:
            unit, words = order_words(game_map, given.text)
            if given.text == f"{given.unit} (no order)":
                unit, words = order_words(game_map, f"{given.unit} H")[0], without
            ordered.add(given.unit)
            said = in_words(game_map, given.said)
            found = {"power": power, "text": given.text, "unit": unit, "words": words}
            lines.append(found | {"result": list(given.words), "said": said})
        if not moving:
            continue
        for text in frame.scene.units[power]:
            if text not in ordered:
                unit, _ = order_words(game_map, f"{text} H")
                held = {"power": power, "text": text, "unit": unit, "words": without}
                lines.append(held | {"result": [], "said": ""})
    return lines


def draft_view(session: PlaySession, viewer: Viewer, orders: Sequence[str]) -> dict:
    """Return the position now with orders that the viewer thinks about."""
    with session.lock:
        game = session.game
        given = {viewer.power: list(orders)} if viewer.power else {}
        return _picture(game.phase, board_svg(game, orders=given, legend=False), [])


def _picture(phase: str, svg: str, orders: list[dict], talk: Sequence[tuple] = ()) -> dict:
    found = {"phase": phase, "title": phase_title(phase), "svg": svg, "orders": orders}
    return found | {"talk": list(talk)}


def hint_view(session: PlaySession, viewer: Viewer) -> dict:
    """Return the order probabilities of the player that gives hints, and its value.

    `tried` is null, or what a player that searches has tried: the best candidates, the orders that
    it expects of the others, and whom it takes these for.
    """
    found, game_map = session.hint(viewer), session.game.map
    tried = found.tried and {
        "candidates": [candidate._asdict() for candidate in found.tried.candidates[:CANDIDATES]],
        "expected": {
            power: [
                {"text": ": ".join(order_words(game_map, text)), "probability": round(share, 4)}
                for text, share in orders
            ]
            for power, orders in found.tried.expected.items()
        },
        "beliefs": {
            power: {session.shown(who, viewer): share for who, share in beliefs.items()}
            for power, beliefs in found.tried.beliefs.items()
        },
    }
    return {
        "step": session.now.step,
        "value": found.value,
        "scale": session.hint_scale(),
        "tried": tried,
        "slots": [
            {"unit": unit, "orders": [{"text": t, "probability": round(p, 4)} for t, p in ranked]}
            for unit, ranked in found.slots
        ],
    }


def talk_view(game: Game, power: str | None, open_press: bool) -> dict:
    """Return what somebody may know of the talk of this phase.

    Keys: protocol; open, whether the power may make deals now; left, how many offers it may still
    send, null without a limit; offers, those from and to it; partners, whom it can make offers and
    for which orders they can support each other; peace, the pairs of powers that are known to have
    it.
    """
    mine = [] if power is None else game.said(power)
    moving = phase_kind(game.phase) == "movement"
    alive = {name for name in game.powers if game.units[name] or game.centers[name]}
    alive -= set(game.conceded)
    talks = moving and power in alive
    sent = sum(game.powers[offer.sender] == power for offer in mine)
    peace = game.peace()
    found = {
        "protocol": game.press,
        "open": talks,
        "left": max(0, game.table.rounds - sent) if game.press == "offers" else None,
        "offers": [offer_view(game, offer, number) for number, offer in enumerate(mine, 1)],
        "partners": [],
        "peace": peace if open_press else [pair for pair in peace if power in pair],
    }
    if talks:
        lists = _lists(game) if game.press == "offers" else {}
        for name in game.powers:
            if name != power and name in alive:
                found["partners"].append(
                    {
                        "power": name,
                        "help": _supports(game, lists, name, power),
                        "favor": _supports(game, lists, power, name),
                    }
                )
    return found


def offer_view(game: Game, offer: Offer, number: int) -> dict:
    """Return an offer: number, sender, receiver, state, and clauses of a power and words each.

    Args:
        number: among those that the viewer sees.
    """
    return {
        "number": number,
        "sender": game.powers[offer.sender],
        "receiver": game.powers[offer.receiver],
        "state": offer.state,
        "clauses": [_clause_view(game, offer, clause) for clause in offer.clauses],
    }


def _clause_view(game: Game, offer: Offer, clause: ClauseRow) -> dict:
    kind, side, v, number = clause
    if kind == Clause.PEACE:
        return {"power": None, "words": "peace"}
    who = None if side == Side.BOTH else (offer.sender, offer.receiver)[side]
    power = None if who is None else game.powers[who]
    if kind == Clause.ORDER:
        unit, words = order_words(game.map, game.vector_game.vocabulary.texts[number])
        return {"power": power, "words": f"{unit}: {words}"}
    where = game.map.province_names[game.map.provinces[v]]
    words = {Clause.ZONE: "keep out of {} and leave it", Clause.KEEP_OUT: "keeps out of {}"}
    return {"power": power, "words": words.get(kind, "leaves {}").format(where)}


def _lists(game: Game) -> dict[str, list[int]]:
    """Return power -> numbers of all its legal orders."""
    decisions: Decisions = game.vector_game.decisions()
    return {
        game.powers[decisions.power[d]]: decisions.order[
            decisions.order_start[decisions.slot_start[d]] : decisions.order_start[
                decisions.slot_start[d + 1]
            ]
        ].tolist()
        for d in range(decisions.count)
    }


def _supports(
    game: Game, lists: Mapping[str, list[int]], helper: str, mover: str
) -> list[dict[str, str]]:
    """Return how one power can support another: support, order, unit and words of the support."""
    table, texts = game.vector_game.table, game.vector_game.vocabulary.texts
    orders = {}  # (location, kind of support, target) -> the order that is supported
    for number in lists.get(mover, ()):
        kind, at = table.kind[number], table.location[number]
        if kind == HOLD:
            orders[at, SUPPORT_HOLD, None] = number
        elif kind in (MOVE, MOVE_VIA):
            orders.setdefault((at, SUPPORT_MOVE, table.target[number]), number)
    found = []
    for number in lists.get(helper, ()):
        kind = table.kind[number]
        if kind not in (SUPPORT_HOLD, SUPPORT_MOVE):
            continue
        target = table.target[number] if kind == SUPPORT_MOVE else None
        order = orders.get((table.other_location[number], kind, target))
        if order is not None:
            unit, words = order_words(game.map, texts[number])
            found.append(
                {"support": texts[number], "order": texts[order], "words": f"{unit}: {words}"}
            )
    return found
