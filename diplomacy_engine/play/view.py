"""What somebody at a game is shown, as dictionaries for JSON: the state of play, orders, pictures.

Nobody is shown the orders that others have given for the current phase, nor what they talk about:
a seat sees its own offers and deals, and with open press also who else has peace.
"""

import base64
from collections.abc import Mapping, Sequence

from ..constants import HOLD, MOVE, MOVE_VIA, SUPPORT_HOLD, SUPPORT_MOVE, phase_kind
from ..games.decisions import Decisions
from ..pictures.board import orders_svg, phase_title, scene_of
from ..pictures.chart import centers_svg
from ..pictures.drawing import drawing_of
from ..pictures.page import CHART, phase_facts
from ..pictures.png import png
from ..press.daide import ClauseRow, is_daide, message_words
from ..press.deals import Clause, Side
from ..replays.gif import gif
from ..replays.replay import frame_svg, make_replay, order_lines
from ..rules.map import Map
from ..rules.notation import order_words, province_of, read_order, rest_of_order
from ..textgame.game import Game
from ..textgame.talk import Offer
from .file import GUEST, PLAYER, WATCH
from .review import page_facts
from .session import PlaySession, Viewer
from .state import PlayError

TROUBLE = "a player could not go on"  # said to others than the host, whom it is told in full
CANDIDATES = 6  # of those that a search has tried are shown


def order_view(game_map: Map, text: str) -> dict:
    order = read_order(game_map, text)
    place = order.target or (order.other.place if order.other else order.unit.place)
    other = order.other and game_map.provinces[order.other.place.province]
    return {
        "text": text,
        "verb": order.verb,
        "words": rest_of_order(game_map, order),  # without its unit
        "place": game_map.provinces[place.province],  # to be clicked for it
        "other": other,  # province of the unit that is supported or convoyed
    }


def decision_view(game: Game, power: str) -> dict | None:
    """Return what a power has to order now; None if nothing.

    For builds a unit is an open home center.
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


def game_view(session: PlaySession, viewer: Viewer) -> dict:
    """Return everything about a session that a viewer may know, but for the pictures."""
    with session.lock:
        game, seats, you = session.game, session.now.seats, viewer.power
        years = game.rules.max_years
        waiting = session.now.waiting_for()
        powers = [_power_view(session, viewer, power, waiting) for power in game.powers]
        phases = [(phase["name"], phase["state"]["centers"]) for phase in game.history]
        phases.append((game.phase, game.centers))
        view = {
            "revision": session.revision,
            "step": session.now.step,
            "game": session.tokens[WATCH][:6] + game.id,  # for what the page remembers
            "map": game.map.name,
            "phase": game.phase,
            "title": phase_title(game.phase),
            "phases": [phase["name"] for phase in game.history] + [game.phase],
            "over": game.is_over,
            "result": game.result,
            "votes": votes_view(game, you),
            "can_concede": session.now.can_concede(you),
            "teams": game.map.teams.text,
            "victory": int(game.map.board.victory_centers),
            "last_year": years and int(game.map.board.first_year) + years - 1,
            "powers": powers,
            "chart": centers_svg(drawing_of(game.map), phases),
            "sides": CHART,
            "sandbox": session.now.is_sandbox,
            "names": game.map.province_names,
            "started": seats is not None,
            "before": session.now.before.get(you) if you else None,
            "you": you,
            "host": viewer.host,
            "decision": decision_view(game, you) if you else None,
            "given": game.orders.get(you) if you else None,
            "waiting": waiting,
            "can_hint": you is not None and session.can_hint,
            "can_review": game.is_over and bool(game.history) and not game.map.teams.text,
            "can_go_on": viewer.host and session.now.can_go_on(),
            "can_take_back": viewer.host
            and not session.rated
            and session.now.last_own_phase() is not None,
            "rated": session.rated,
            "rank": session.standing(),
            "trouble": session.trouble if viewer.host or not session.trouble else TROUBLE,
            "talk": None,
        }
        if game.table is not None and seats is not None and not game.is_over:
            view["talk"] = talk_view(game, you, session.now.reasons)
        if viewer.host:
            guests = session.now.powers_of(GUEST)
            view |= {
                "opponents": [session.told(name, game) for name in session.record.opponents],
                "choices": list(session.choices),
                "meanings": session.meanings,
                "chosen": session.chosen,
                "settings": settings_view(session),
                "maps": session.maps,
                "file": str(session.file),
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
        "begins": int(session.game.phase[1:-1]) if not session.game.is_over else None,
    }


def _power_view(session: PlaySession, viewer: Viewer, power: str, waiting: list[str]) -> dict:
    game, seat = session.game, (session.now.seats or {}).get(power)
    player = None
    if seat is not None:
        player = session.shown(seat.player, viewer) if seat.kind == PLAYER else seat.kind
    return {
        "power": power,
        "player": player,
        "person": seat is not None and seat.kind != PLAYER,
        "centers": len(game.centers[power]),
        "provinces": sorted({*game.centers[power], *map(province_of, game.units[power])}),
        "units": len(game.units[power]) + len(game.dislodged.get(power, {})),
        "alive": game.is_alive(power),
        "conceded": power in game.conceded,
        "ready": power not in waiting,
    }


def board_view(session: PlaySession, viewer: Viewer, number: int | None = None) -> dict:
    """Return a phase that was played, with its orders and results; None for the position now."""
    with session.lock:
        game = session.game
        if number is None or number >= len(game.history):
            return draft_view(session, viewer, game.orders.get(viewer.power, []))
        replay = make_replay(game.to_saved_game(), game.map)
        frame = replay.frames[number]
        audible = [message for message in frame.talk if session.may_hear(viewer, *message[:2])]
        facts = phase_facts(drawing_of(game.map), frame.scene)
        return facts | {
            "title": phase_title(frame.scene.phase),
            "orders": order_lines(replay, number),
            "talk": audible + frame.declared,
        }


def texts_view(session: PlaySession, viewer: Viewer, number: int | None) -> dict:
    """Return a phase, None for the present one, in the forms that can be pasted: its position, and
    all orders up to it."""
    phases = session.saved_game(viewer)["phases"]
    number = _phase_number(phases, number)
    state, powers = phases[number]["state"], session.game.powers
    position = [_dated(state["name"])]
    for power in powers:
        units = [unit for unit in state["units"].get(power, ()) if unit[0] != "*"]
        position += [f"{power}: {', '.join(units)}"] if units else []
    position += [f"{p}: centers {', '.join(state['centers'].get(p, ()))}" for p in powers]
    orders = []
    for phase in phases[: number + 1]:
        submitted = {power: texts for power, texts in phase["orders"].items() if texts}
        orders += [
            _dated(phase["name"]),
            *(f"{p}: {', '.join(t)}" for p, t in submitted.items()),
            "",
        ]
    return {"position": "\n".join(position), "orders": "\n".join(orders).strip()}


def _dated(phase: str) -> str:
    season, _, kind = phase_title(phase).partition(", ")
    return f"{season}{', retreats' if kind == 'retreats' else ''}"


def _phase_number(phases: Sequence, number: int | None) -> int:
    last = len(phases) - 1
    return last if number is None else min(number, last)


def picture_view(session: PlaySession, viewer: Viewer, number: int | None, moving: bool) -> dict:
    saved = session.saved_game(viewer)
    replay = make_replay(saved, session.game.map)
    number = _phase_number(replay.frames, number)
    if moving:
        picture = gif(replay, last=number)
    else:
        picture = png(frame_svg(replay, number, "light"), replay.map)
    return {"data": base64.b64encode(picture).decode()}


def review_view(session: PlaySession, viewer: Viewer) -> dict:
    """Return as much of the review as there is yet; without `decisions` until it has begun."""
    job = session.review(viewer)
    if job.trouble:
        raise PlayError(f"the review failed: {job.trouble}")
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


def draft_view(session: PlaySession, viewer: Viewer, orders: Sequence[str]) -> dict:
    """Return the position now with orders that the viewer thinks about; in a sandbox also with
    those that were submitted already."""
    with session.lock:
        game = session.game
        drafts = dict(game.orders) if session.now.is_sandbox else {}
        if viewer.power:
            drafts[viewer.power] = list(orders)
        scene = scene_of(game).with_orders(game.map, drafts)
        facts = phase_facts(drawing_of(game.map), scene)
        return facts | {"title": phase_title(game.phase), "orders": [], "talk": []}


def hint_view(session: PlaySession, viewer: Viewer) -> dict:
    with session.lock:  # the game may go on meanwhile
        hint, now = session.hint(viewer), session.now
    game_map = now.game.map
    likeliest = {viewer.power: [ranked[0][0] for _, ranked in hint.slots]}
    scene = scene_of(now.game).with_orders(game_map, likeliest)
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


def talk_view(game: Game, power: str | None, reasons: Mapping[int, str]) -> dict:
    mine, press = [] if power is None else game.said(power), game.table
    offers = press.protocol == "offers"
    moving = phase_kind(game.phase) == "movement"
    alive = game.alive
    talks = moving and power in alive
    sent = sum(game.powers[offer.sender] == power for offer in mine)
    peace, lists = game.peace(), _lists(game) if talks and offers else {}
    return {
        "protocol": press.protocol,
        "binding": press.binding,
        "open": talks,  # to the power
        "left": max(0, press.rounds - sent) if offers else None,
        "offers": [
            offer_view(game, offer, number, power) | {"reason": reasons.get(offer.number, "")}
            for number, offer in enumerate(mine, 1)
        ],
        "later": [
            offer_view(game, offer, 0, power)
            for offer in (game.later_deals(power) if power else ())
        ],
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
        "peace": peace if press.open_press else [pair for pair in peace if power in pair],
    }


def sentences(game: Game, power: str | None) -> list[tuple[str, str, str]]:
    """Return what was said to and by a power in this phase besides offers: who, to whom, what."""
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
    number_of_power = None if side == Side.BOTH else (offer.sender, offer.receiver)[side]
    power = None if number_of_power is None else game.powers[number_of_power]
    if kind == Clause.ORDER:
        unit, words = order_words(game.map, game.vector_game.vocabulary.texts[number])
        return {"power": power, "words": f"{unit}: {words}"}
    where = game.map.province_names[game.map.provinces[v]]
    words = {Clause.ZONE: "keep out of {} and leave it", Clause.KEEP_OUT: "keeps out of {}"}
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
    table, texts = game.vector_game.table, game.vector_game.vocabulary.texts
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
            unit, words = order_words(game.map, texts[number])
            supports.append(
                {"support": texts[number], "order": texts[order], "words": f"{unit}: {words}"}
            )
    return supports
