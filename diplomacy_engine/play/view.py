"""A viewer's view of a game, as dictionaries for JSON: the state of play, orders, pictures.

A viewer does not see the others' orders for the current phase, or their talk: a seat sees its own
offers and deals, and with open press also which other powers have peace.
"""

import base64
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ..constants import HOLD, MOVE, MOVE_VIA, SUPPORT_HOLD, SUPPORT_MOVE, phase_kind
from ..games.decisions import Decisions
from ..pictures.board import orders_svg, phase_title
from ..pictures.chart import centers_svg
from ..pictures.drawing import Scene, drawing_of
from ..pictures.page import CHART, phase_facts
from ..pictures.png import png
from ..press.daide import ClauseRow, is_daide, message_words
from ..press.deals import Clause, Side
from ..replays.gif import gif
from ..replays.replay import frame_svg, make_replay
from ..replays.text import order_lines
from ..rules.map import Map
from ..rules.notation import province_of
from ..rules.order_words import order_words, rest_of_order
from ..rules.reading import read_order
from ..rules.vocabulary import vocabulary
from ..textgame.game import Game
from ..textgame.saved_game import in_disorder
from ..textgame.talk import Offer
from .file import GUEST, PLAYER, WATCH
from .review import page_facts
from .session import PlaySession, Viewer
from .state import PlayError

TROUBLE = "a player could not go on"  # said to others than the host, whom it is told in full
CANDIDATES = 6  # of those that a search has tried are shown


def order_view(game_map: Map, text: str) -> dict:
    order = read_order(game_map, text)
    return {
        "text": text,
        "verb": order.verb,
        "words": rest_of_order(game_map, order),  # without its unit
        "place": game_map.provinces[order.aim.province],  # to be clicked for it
        "other": next(
            (game_map.provinces[u.place.province] for u in order.units[1:]), None
        ),  # helped
    }


def decision_view(game: Game, power: str, draft: Sequence[str] = ()) -> dict | None:
    """Return a power's decision now, or None.

    For builds a unit is an open home center. Of the `draft` it has the orders that can be given,
    and those that a deal leaves a unit alone.
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
    units = [_place_view(game, place, bound) for place in places]
    chosen = {}
    for unit in units:
        texts = [order["text"] for order in unit["orders"]]
        promised = texts if unit["bound"] and len(texts) == 1 else []
        for text in [*promised, *(text for text in draft if text in texts)][:1]:
            chosen[unit["unit"]] = text
    return {
        "kind": kind,
        "count": abs(owed) if phase == "adjustments" else len(places),
        "units": units,
        "draft": chosen,  # unit -> order
    }


def partners_bound_to(game: Game, power: str) -> dict[str, list[str]]:
    """Return province -> the powers whose deals take orders from the unit there."""
    partners = {}
    for province, offers in game.bindings(power).items():
        sides = {p for offer in offers for p in offer.powers}
        partners[province] = sorted({game.powers[p] for p in sides} - {power})
    return partners


def _place_view(game: Game, place: str, bound: Mapping[str, list[str]]) -> dict:
    province = province_of(place)
    orders = [text for text in game.legal_orders(place) if text != "WAIVE"]
    return {
        "unit": place,
        "province": province,
        "name": game.map.province_names[province],
        "orders": [order_view(game.map, text) for text in orders],
        "bound": bound.get(province, []),  # powers whose deals leave it fewer orders
    }


class _Shown(NamedTuple):
    """A phase that was played, or the position now, as a viewer may see it."""

    scene: Scene
    conceded: Collection[str]
    orders: list[dict]  # with their results
    talk: Sequence[tuple[str, str, str]]
    waiting: Collection[str] = ()  # powers that are to give orders now


def _phase_number(phases: Sequence[str], phase: str | None) -> int | None:
    """Return the number of an adjudicated phase; None for the present one."""
    return phases.index(phase) if phase in phases[:-1] else None


def _shown(session: PlaySession, viewer: Viewer, number: int | None) -> _Shown:
    """In a sandbox what is drafted and submitted for all is shown, else what the viewer drafts or
    has submitted."""
    game, now = session.game, session.now
    if number is None:
        drafts = {}
        for power in game.powers if now.is_sandbox else filter(None, [viewer.power]):
            drafts[power] = game.orders.get(power, [])
            if power not in game.orders and (power in now.drafts or power == viewer.power):
                decision = decision_view(game, power, now.drafts.get(power, ()))
                drafts[power] = list(decision["draft"].values()) if decision else []
        scene = game.scene().with_orders(game.map, drafts)
        return _Shown(scene, game.conceded, [], [], now.waiting_for())
    replay = make_replay(game.to_saved_game(), game.map)
    frame, state = replay.frames[number], game.history[number]["state"]
    audible = [message for message in frame.talk if session.may_hear(viewer, *message[:2])]
    return _Shown(
        frame.scene,
        [power for power in game.conceded if in_disorder(state, power)],
        order_lines(replay, number),
        audible + frame.declared,
    )


def game_view(session: PlaySession, viewer: Viewer, phase: str | None = None) -> dict:
    """Return all that a viewer is shown of a phase, by its name; None: of the position now."""
    with session.lock:
        game, seats, you = session.game, session.now.seats, viewer.power
        years = game.rules.max_years
        phases = [(phase["name"], phase["state"]["centers"]) for phase in game.history]
        phases.append((game.phase, game.centers))
        names = [name for name, _ in phases]
        number = _phase_number(names, phase)
        shown = _shown(session, viewer, number)
        view = {
            "revision": session.revision,
            "step": session.now.step,
            "game": session.tokens[WATCH][:6] + game.id,  # for what the page remembers
            "map": game.map.name,
            "phases": names,
            "titles": [phase_title(name) for name in names],
            "shown": number,  # None: now
            "board": phase_facts(drawing_of(game.map), shown.scene),
            "orders": shown.orders,
            "said": shown.talk,
            "over": game.is_over,
            "result": game.result,
            "votes": votes_view(game, you),
            "can_concede": session.now.can_concede(you),
            "teams": game.map.teams.text,
            "victory": int(game.map.board.victory_centers),
            "last_year": years and int(game.map.board.first_year) + years - 1,
            "powers": [_power_view(session, viewer, shown, power) for power in game.powers],
            "chart": centers_svg(drawing_of(game.map), phases),
            "sides": CHART,
            "sandbox": session.now.is_sandbox,
            "names": game.map.province_names,
            "started": bool(seats),
            "you": you,
            "host": viewer.host,
            "decision": decision_view(game, you, session.now.drafts.get(you, ())) if you else None,
            "given": game.orders.get(you) if you else None,
            "waiting": session.now.waiting_for(),
            "can_hint": you is not None and session.can_hint,
            "can_review": session.can_review,
            "reviewed": session.review_of(viewer) is not None,
            "can_go_on": viewer.host and session.now.can_go_on(),
            "can_take_back": viewer.host
            and not session.rated
            and session.now.last_own_phase() is not None,
            "rated": session.rated,
            "rank": session.standing(),
            "trouble": session.trouble if viewer.host or not session.trouble else TROUBLE,
            "talk": None,
        }
        if game.table is not None and seats and not game.is_over:
            view["talk"] = talk_view(game, you or "", session.now.reasons)
        if viewer.host:
            guests = session.now.powers_of(GUEST)
            view |= {
                "choices": list(session.choices),
                "meanings": session.meanings,
                "levels": session.levels,
                "can_rate": session.can_rate,
                "chosen": session.chosen,
                "settings": settings_view(session),
                "maps": session.maps,
                "file": str(session.file),
                "parent": session.parent_token(),
                "links": {name: session.tokens[name] for name in (*guests, WATCH)},
            }
        return view


def votes_view(game: Game, power: str | None) -> dict | None:
    """Return how the vote for a draw stands; None without one.

    Who has voted, nobody is shown before the phase is over.
    """
    if not game.rules.draw_votes or game.is_over:
        return None
    votes = game.votes
    return {"mine": power in votes, "given": len(votes), "needed": len(game.alive)}


def settings_view(session: PlaySession) -> dict:
    rules = session.game.rules
    return {
        "draws_after": rules.draws_after,
        "press": rules.press,
        "binding": rules.binding,
        "hints": session.allows_hints,
        "seed": session.record.seed,
        "begins": int(session.game.phase[1:-1]) if not session.game.is_over else None,
    }


def _power_view(session: PlaySession, viewer: Viewer, shown: _Shown, power: str) -> dict:
    """Return a power in the phase shown, and its player."""
    scene, seat = shown.scene, session.now.seats.get(power)
    player = None
    if seat is not None:
        player = session.shown(seat.player, viewer) if seat.kind == PLAYER else seat.kind
    units, centers = [*scene.units[power], *scene.dislodged.get(power, ())], scene.centers[power]
    return {
        "power": power,
        "player": player,
        "person": seat is not None and seat.kind != PLAYER,
        "centers": len(centers),
        "provinces": sorted({*centers, *map(province_of, units)}),
        "units": len(units),
        "alive": bool(units or centers),
        "conceded": power in shown.conceded,
        "ready": power not in shown.waiting,
    }


def texts_view(session: PlaySession, viewer: Viewer, phase: str | None) -> dict:
    """Return a phase, None for the present one, in the forms that can be pasted: its position, and
    all orders up to it."""
    phases = session.saved_game(viewer)["phases"]
    number = _phase_number([one["name"] for one in phases], phase)
    with session.lock:
        game = session.game
        if number is not None:
            game = Game.from_state(game.map, game.history[number]["state"])
        position = game.to_position().replace("; ", ";\n")
    orders = []
    for one in phases[: None if number is None else number + 1]:
        submitted = {power: texts for power, texts in one["orders"].items() if texts}
        orders.append(_dated(one["name"]))
        orders += [*(f"{p}: {', '.join(texts)}" for p, texts in submitted.items()), ""]
    return {"position": position, "orders": "\n".join(orders).strip()}


def _dated(phase: str) -> str:
    season, _, kind = phase_title(phase).partition(", ")
    return f"{season}{', retreats' if kind == 'retreats' else ''}"


def picture_view(session: PlaySession, viewer: Viewer, phase: str | None, moving: bool) -> dict:
    replay = make_replay(session.saved_game(viewer), session.game.map)
    number = _phase_number([frame.scene.phase for frame in replay.frames], phase)
    number = len(replay.frames) - 1 if number is None else number
    if moving:
        picture = gif(replay, last=number)
    else:
        picture = png(frame_svg(replay, number, "light"), replay.map)
    return {"data": base64.b64encode(picture).decode()}


def review_view(session: PlaySession, viewer: Viewer) -> dict:
    """Return as much of the review as there is yet; without `decisions` until it has begun."""
    job = session.review_of(viewer)
    if job is None:
        raise PlayError("nobody has asked for a review")
    if job.trouble:
        return {"trouble": f"the review failed: {job.trouble}"}
    if job.reviews is None:
        return {}
    with session.lock:
        replay = make_replay(session.game.to_saved_game(), session.game.map)
    return page_facts(replay, job.reviews, list(job.decisions))


def past_view(session: PlaySession) -> list[dict]:
    with session.lock:
        game = session.game
        replay = make_replay(game.to_saved_game(), game.map)
        return [
            {"title": phase_title(phase["name"]), "orders": order_lines(replay, number)}
            for number, phase in enumerate(game.history)
        ]


def draft_view(session: PlaySession, viewer: Viewer, step: int, orders: list[str]) -> dict:
    """Keep orders that somebody has chosen; return the board with them."""
    with session.lock:
        session.draft(viewer, step, orders)
        scene = _shown(session, viewer, None).scene
        return phase_facts(drawing_of(session.game.map), scene)


def hint_view(session: PlaySession, viewer: Viewer) -> dict:
    with session.lock:  # the game may go on meanwhile
        hint, now = session.hint(viewer), session.now
    game_map = now.game.map
    likeliest = {session.seat(viewer): [ranked[0][0] for _, ranked in hint.slots]}
    scene = now.game.scene().with_orders(game_map, likeliest)
    tried = hint.tried and {
        "candidates": [candidate._asdict() for candidate in hint.tried.candidates[:CANDIDATES]],
        "expected": {
            power: [
                {"text": ": ".join(order_words(game_map, text)), "probability": round(share, 4)}
                for text, share in orders
            ]
            for power, orders in hint.tried.expected.items()
        },
        "beliefs": {
            power: {session.shown(player, viewer): share for player, share in beliefs.items()}
            for power, beliefs in hint.tried.beliefs.items()
        },
    }
    return {
        "step": now.step,
        "marks": orders_svg(drawing_of(game_map), scene),
        "tried": tried,  # by a search
        "slots": [
            {
                "unit": unit,
                "orders": [
                    {"text": text, "probability": round(share, 4), "usual": hint.usual.get(text)}
                    for text, share in ranked
                ],
            }
            for unit, ranked in hint.slots
        ],
    }


def outlook_view(session: PlaySession, viewer: Viewer, step: int, orders: list[list[str]]) -> dict:
    outlooks = session.outlook(viewer, step, orders)
    return {"outlooks": outlooks and [one._asdict() for one in outlooks]}


def talk_view(game: Game, power: str, reasons: Mapping[int, str]) -> dict:
    """Return what a power knows of the talk in this phase; "": what all do."""
    mine, later = (game.said(power), game.later_deals(power)) if power else ([], [])
    rules, offers, alive = game.rules, game.rules.press == "offers", game.alive
    talks = phase_kind(game.phase) == "movement" and power in alive
    sent = sum(game.powers[offer.sender] == power for offer in mine)
    peace, lists = game.peace(), _lists(game) if talks and offers else {}
    return {
        "protocol": rules.press,
        "binding": rules.binding,
        "open": talks,  # to the power
        "left": max(0, (rules.press_rounds or 0) - sent) if offers else None,
        "offers": [
            offer_view(game, offer, number, power) | {"reason": reasons.get(offer.number, "")}
            for number, offer in enumerate(mine, 1)
        ],
        "later": [offer_view(game, offer, 0, power) for offer in later],
        "said": sentences(game, power),
        "partners": [
            {
                "power": name,
                "help": _supports(game, lists, name, power),
                "favor": _supports(game, lists, power, name),
            }
            for name in game.powers
            if talks and name != power and name in alive
        ],
        "peace": peace if rules.open_press else [pair for pair in peace if power in pair],
    }


def sentences(game: Game, power: str) -> list[tuple[str, str, str]]:
    """Return a power's messages in this phase besides offers: sender, recipient, text."""
    return [
        (message["sender"], message["recipient"], message_words(game.vector_game, message))
        for message in game.messages
        if power in (message["sender"], message["recipient"]) and not is_daide(message["message"])
    ]


def offer_view(game: Game, offer: Offer, number: int, viewer: str) -> dict:
    me = game.map.power_index[viewer]
    receiver = me if me in offer.receivers else offer.receiver
    others = [game.powers[q].capitalize() for q in offer.receivers if q != receiver]
    notes = [f"in {offer.phase}"] * bool(offer.phase) + [f"with {name}, too" for name in others]
    return {
        "number": number,  # among those that the viewer sees
        "sender": game.powers[offer.sender],
        "receiver": game.powers[receiver],
        "state": "agreed" if me in offer.agreed and offer.state == "open" else offer.state,
        "clauses": [
            *({"power": None, "words": words} for words in notes),
            *(_clause_view(game, offer, clause) for clause in offer.clauses),
        ],
    }


def _clause_view(game: Game, offer: Offer, clause: ClauseRow) -> dict:
    kind, side, v, number = clause
    if kind == Clause.PEACE:
        return {"power": None, "words": "peace"}
    power = None if side == Side.BOTH else game.powers[(offer.sender, offer.receiver)[side]]
    if kind == Clause.ORDER:
        text = vocabulary(game.map).texts[number]
        return {"power": power, "words": ": ".join(order_words(game.map, text))}
    where = game.map.province_names[game.map.provinces[v]]
    words: dict[int, str] = {
        Clause.ZONE: "keep out of {} and leave it",
        Clause.KEEP_OUT: "keeps out of {}",
    }
    return {"power": power, "words": words.get(kind, "leaves {}").format(where)}


def _lists(game: Game) -> dict[str, list[int]]:
    decisions: Decisions = game.vector_game.decisions()
    starts = decisions.order_start[decisions.slot_start]  # of each power's orders
    return {
        game.powers[power]: decisions.order[slice(*starts[d : d + 2])].tolist()
        for d, power in enumerate(decisions.power)
    }


def _supports(
    game: Game, lists: Mapping[str, list[int]], helper: str, mover: str
) -> list[dict[str, str]]:
    """Return how one power can support another: support, order, unit and words of the support."""
    table, texts = vocabulary(game.map).table, vocabulary(game.map).texts
    orders = {}  # (location, kind of support, target) -> the order that is supported
    for number in lists.get(mover, ()):
        kind, at = table.kind[number], table.location[number]
        if kind == HOLD:
            orders[at, SUPPORT_HOLD, None] = number
        elif kind in (MOVE, MOVE_VIA):
            orders.setdefault((at, SUPPORT_MOVE, table.target[number]), number)
    supports = []
    for number in lists.get(helper, ()):
        kind = table.kind[number]
        if kind not in (SUPPORT_HOLD, SUPPORT_MOVE):
            continue
        target = table.target[number] if kind == SUPPORT_MOVE else None
        order = orders.get((table.other_location[number], kind, target))
        if order is not None:
            words = ": ".join(order_words(game.map, texts[number]))
            supports.append({"support": texts[number], "order": texts[order], "words": words})
    return supports
