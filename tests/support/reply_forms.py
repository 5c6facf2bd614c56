"""Forms in which public language models answer: of orders, and of thoughts before them."""

import json

FINAL = ["F BRE - MAO", "A MAR - SPA", "A PAR - BUR"]
DRAFT = ["F BRE - ENG", "A MAR - PIE", "A PAR - PIC"]
UNITS = [order[:5] for order in FINAL]
GOALS = [order[8:] for order in FINAL]
NAMES = ["Brest", "Marseilles", "Paris"]
PLACES = ["Mid-Atlantic Ocean", "Spain", "Burgundy"]
WHY = ["to reach Iberia", "to take a center", "to keep Germany out of Burgundy"]


def each(form: str) -> str:
    """Return a line for each order; `form` may name its parts."""
    lines = []
    for n, (order, unit, goal) in enumerate(zip(FINAL, UNITS, GOALS)):
        parts = {"o": order, "u": unit, "g": goal, "n": n + 1, "name": NAMES[n], "why": WHY[n]}
        parts |= {"k": unit[0], "p": unit[2:], "l": "abc"[n], "L": "ABC"[n], "place": PLACES[n]}
        parts |= {"kind": ("Fleet", "Army", "Army")[n], "roman": ("i", "ii", "iii")[n]}
        parts |= {"old": DRAFT[n], "ordinal": ("First", "Second", "Third")[n]}
        lines.append(form.format(**parts))
    return "\n".join(lines)


def objects(*keys: str, **more: object) -> str:
    """Return JSON with an object for each order: keys are `name=part`."""
    orders = []
    for unit, goal, order in zip(UNITS, GOALS, FINAL):
        parts = {"u": unit, "g": goal, "o": order, "p": unit[2:], "m": "move", "M": "MOVE"}
        parts |= {"kind": "fleet" if unit[0] == "F" else "army", "k": unit[0], "tail": order[6:]}
        orders.append({key.split("=")[0]: parts[key.split("=")[1]] for key in keys})
    return json.dumps({**more, "orders": orders} if more else orders)


LINES = "\n".join(FINAL)
OLD = "\n".join(DRAFT)
# What is to be read of all is FINAL.
REPLY_FORMS = {
    # Numbers, letters, bullets
    "1.": each("{n}. {o}"),
    "1)": each("{n}) {o}"),
    "(1)": each("({n}) {o}"),
    "1:": each("{n}: {o}"),
    "1 -": each("{n} - {o}"),
    "[1]": each("[{n}] {o}"),
    "#1": each("#{n} {o}"),
    "#1:": each("#{n}: {o}"),
    "1 alone": each("{n} {o}"),
    "1.bold": each("{n}. **{o}**"),
    "Order 1:": each("Order {n}: {o}"),
    "Unit 1:": each("Unit {n}: {o}"),
    "Order #1 -": each("Order #{n} - {o}"),
    "Step 1.": each("Step {n}. {o}"),
    "a)": each("{l}) {o}"),
    "(a)": each("({l}) {o}"),
    "a.": each("{l}. {o}"),
    "A.": each("{L}. {o}"),
    "A)": each("{L}) {o}"),
    "i.": each("{roman}. {o}"),
    "ii)": each("{roman}) {o}"),
    "First,": each("{ordinal}, {o}"),
    "keycaps": each("{n}\ufe0f\u20e3 {o}"),
    "circled": "\u2460 F BRE - MAO\n\u2461 A MAR - SPA\n\u2462 A PAR - BUR",
    "-": each("- {o}"),
    "*": each("* {o}"),
    "+": each("+ {o}"),
    "bullet": each("\u2022 {o}"),
    "triangle": each("\u25b8 {o}"),
    "indented": each("    - {o}"),
    "quoted": each("> {o}"),
    "en dash as bullet": each("\u2013 {o}"),
    # Ticks, emoji, tags
    "- [x]": each("- [x] {o}"),
    "- [ ]": each("- [ ] {o}"),
    "tick before": each("\u2705 {o}"),
    "tick behind": each("{o} \u2705"),
    "check mark": each("\u2713 {o}"),
    "emoji before": each("\U0001f3af {o}"),
    "emoji behind": each("{o} \U0001f680"),
    "warning sign": each("\u2694\ufe0f {o}"),
    "flag": "\U0001f1eb\U0001f1f7 FRANCE\n" + each("\u27a4 {o}"),
    "<order>": each("<order>{o}</order>"),
    "<orders>": f"<orders>\n{LINES}\n</orders>",
    "<answer>": f"<answer>\n{LINES}\n</answer>",
    "<li>": "<ul>\n" + each("<li>{o}</li>") + "\n</ul>",
    "<br>": each("{o}<br>"),
    "<b>": each("<b>{u}</b> - {g}"),
    "xml unit attribute": each('<order unit="{u}">{o}</order>'),
    # Reasons
    "reason: hyphen": each("{o} - {why}"),
    "reason: two hyphens": each("{o} -- {why}"),
    "reason: en dash": each("{o} \u2013 {why}"),
    "reason: em dash": each("{o} \u2014 {why}"),
    "reason: em dash, no spaces": each("{o}\u2014{why}"),
    "reason: brackets": each("{o} ({why})"),
    "reason: brackets with comma": each("{o} ({why}, at last)"),
    "reason: colon": each("{o}: {why}"),
    "reason: comma": each("{o}, {why}"),
    "reason: semicolon": each("{o}; {why}"),
    "reason: hash": each("{o}  # {why}"),
    "reason: slashes": each("{o}  // {why}"),
    "reason: no sign": each("{o} {why}"),
    "reason: because": each("{o} because I want {why}"),
    "reason: so that": each("{o} so that I am able {why}"),
    "reason: next line": each("{o}\n  This is {why}."),
    "reason: next bullet": each("{n}. {o}\n   - Reason: {why}"),
    "reason: arrow": each("{o} => {why}"),
    "reason: italics": each("{o} *({why})*"),
    "reason: bold order": each("- **{o}** \u2013 {why}."),
    "reason: bold order, colon inside": each("**{o}:** {why}."),
    "reason: a sentence": each("{o}. This is {why}."),
    # Quotation marks, code
    "smart quotes": each("\u201c{o}\u201d"),
    "single smart quotes": each("\u2018{o}\u2019"),
    "quotes and comma": each('"{o}",'),
    "ticks": each("`{o}`"),
    "ticks in bullets": each("- `{o}`: {why}"),
    "ticks around parts": each("`{u}` - `{g}`"),
    "fence": f"```\n{LINES}\n```",
    "fence with a name": f"Here are my orders:\n\n```text\n{LINES}\n```\n\nGood luck!",
    "tildes": f"~~~\n{LINES}\n~~~",
    "fence for each": each("```\n{o}\n```"),
    "bold": each("**{o}**"),
    "bold italics": each("***{o}***"),
    "bold unit": each("**{u}** - {g}"),
    "bold unit, colon inside": each("**{u}:** move to {g}"),
    "boxed": "$$\\boxed{\n" + LINES + "\n}$$",
    # Arrows and words
    "arrow": each("{u} \u2192 {g}"),
    "long arrow": each("{u} \u27f6 {g}"),
    "heavy arrow": each("{u} \u279c {g}"),
    "emoji arrow": each("{u} \u27a1\ufe0f {g}"),
    "->": each("{u} -> {g}"),
    "-->": each("{u} --> {g}"),
    ">": each("{u} > {g}"),
    "no spaces": each("{u}-{g}"),
    "en dash": each("{u} \u2013 {g}"),
    "minus": each("{u}\u2212{g}"),
    "MOVE": each("{u} MOVE {g}"),
    "moves to": each("{kind} {name} moves to {place}."),
    "will move": each("{kind} {name} will move to {place}."),
    "Army in": each("The {kind} in {name} moves to {place}"),
    "My army": each("My {kind} in {name} will move to {place}."),
    "Move from": each("Move {kind} {name} to {place}"),
    "Paris (Army)": each("{name} ({kind}): move to {place}"),
    "unit: order": each("{u}: {o}"),
    "unit = order": each("{u} = {o}"),
    "unit: move": each("{u}: - {g}"),
    "unit heading": each("**{u}**\n- Move to {g}\n"),
    "unit heading, order below": each("### {u}\n`{o}`\n*{why}*\n"),
    "Order:": each("Unit: {u}\nOrder: {o}\nReason: {why}\n"),
    "lower case": LINES.lower(),
    # Tables
    "table": "| Unit | Order |\n|---|---|\n" + each("| {u} | {o} |"),
    "table with numbers and reasons": "| # | Order | Reason |\n|:-:|---|---|\n"
    + each("| {n} | {o} | {why} |"),
    "table with parts": "| Unit | Action | To |\n|---|---|---|\n" + each("| {u} | move | {g} |"),
    "table with parts and reasons": "| Unit | Move | To | Why |\n|---|---|---|---|\n"
    + each("| {u} | - | {g} | {why} |"),
    "tabs": each("{u}\tmove\t{g}"),
    "csv": "unit,order,target\n" + each("{u},MOVE,{g}"),
    # JSON
    "array": json.dumps(FINAL),
    "orders": json.dumps({"orders": FINAL}),
    "order objects": objects("unit=u", "order=o"),
    "unit, move": objects("unit=u", "type=m", "destination=g"),
    "type, location": objects("unit_type=kind", "location=p", "action=m", "target=g"),
    "by unit": json.dumps({u: o[6:] for u, o in zip(UNITS, FINAL)}, indent=2),
    "with reasoning": json.dumps({"reasoning": f"First {DRAFT[2]}, no.", "orders": FINAL}),
    "with alternatives": json.dumps({"orders": FINAL, "alternatives": DRAFT}),
    "smart quotes in JSON": json.dumps({"orders": FINAL}).replace('"', "\u201c"),
    "lines of JSON": "\n".join(json.dumps({"order": order}) for order in FINAL),
    "PARSABLE OUTPUT": "PARSABLE OUTPUT:\n{{\n" + json.dumps({"orders": FINAL})[1:-1] + "\n}}",
    "python": f"orders = {FINAL}",
    "yaml": "orders:\n" + each("  - unit: {u}\n    order: {o}"),
    # One line, headings
    "one line": ", ".join(FINAL),
    "one line, bars": " | ".join(FINAL),
    "one line, and": f"{FINAL[0]}, {FINAL[1]} and {FINAL[2]}",
    "Orders: one line": "Orders: " + "; ".join(FINAL),
    "I order": f"I order {FINAL[0]}, {FINAL[1]}, {FINAL[2]}.",
    "struck out": each("~~{old}~~ {o}"),
    "crossed": each("\u274c {old}\n\u2705 {o}"),
    "ticked": each("- [ ] {old}\n- [x] {o}"),
    "alternatives": f"Orders:\n{LINES}\n\nAlternatives considered:\n{OLD}",
    "arrow to a better one": f"Draft:\n{OLD}\n\nRevised orders:\n{LINES}",
    "last list": f"{OLD}\n\nOn second thought that leaves Burgundy open.\n\n{LINES}",
    "explained": f"{LINES}\n\nExplanation:\n" + each("- {u}: {why}; {old} would be too slow."),
}

# Thoughts of DRAFT before FINAL.
DECIDED = {
    "think": f"<think>\n{OLD}\n</think>\n{LINES}",
    "end alone": f"I could do this:\n{OLD}\nNo.\n</think>\n\n{LINES}",
    "end alone, after a list": f"{OLD}\n</think>\n{LINES}",
    "two thoughts": f"<think>\n{OLD}\n</think>\n<think>\n{OLD}\n</think>\n{LINES}",
    "a thought behind": f"<think>{OLD}</think>\n{LINES}\n<think>Sound? {OLD}\nYes.</think>",
    "thoughts between": "\n".join(f"<think>{d}?</think>\n{f}" for d, f in zip(DRAFT, FINAL)),
    "beginning twice": f"<think>\nThe tag <think> begins it.\n{OLD}\n</think>\n{LINES}",
    "attributes": f'<think duration="3s">\n{OLD}\n</think>\n{LINES}',
    "seed": f"<seed:think>\n{OLD}\n</seed:think>\n{LINES}",
    "kimi": f"\u25c1think\u25b7\n{OLD}\n\u25c1/think\u25b7\n{LINES}",
    "mistral": f"[THINK]\n{OLD}\n[/THINK]\n{LINES}",
    "mistral, end alone": f"{OLD}\n[/THINK]{LINES}",
    "cohere": f"<|START_THINKING|>\n{OLD}\n<|END_THINKING|><|START_RESPONSE|>\n{LINES}\n"
    "<|END_RESPONSE|>",
    "begin_of_thought": f"<|begin_of_thought|>\n{OLD}\n<|end_of_thought|>\n\n"
    f"<|begin_of_solution|>\n{LINES}\n<|end_of_solution|>",
    "channels": f"<|channel|>analysis<|message|>Maybe\n{OLD}\n<|end|><|start|>assistant"
    f"<|channel|>final<|message|>{LINES}",
    "channels with a comment": f"<|channel|>analysis<|message|>{OLD}<|end|><|start|>assistant"
    f"<|channel|>commentary<|message|>{OLD}<|end|><|start|>assistant<|channel|>final<|message|>"
    f"{LINES}<|return|>",
    "channels without marks": f"analysisMaybe\n{OLD}\nassistantfinal{LINES}",
    "gemma channel": f"<|channel>thought\n{OLD}\n<channel|>{LINES}",
    "unused tokens": f"<unused94>thought\n{OLD}\n<unused95>{LINES}",
    "reasoning": f"<reasoning>\n{OLD}\n</reasoning>\n{LINES}",
    "reasoning, answer": f"<reasoning>\n{OLD}\n</reasoning>\n<answer>\n{LINES}\n</answer>",
    "thought": f"<thought>\n{OLD}\n</thought>\n{LINES}",
    "thoughts": f"<my_thoughts>\n{OLD}\n</my_thoughts>\n{LINES}",
    "reflection": f"<thinking>{OLD}<reflection>{OLD}</reflection></thinking>"
    f"<output>{LINES}</output>",
    "scratchpad": f"<scratchpad>\n{OLD}\n</scratchpad>\n{LINES}",
    "analysis": f"<analysis>\n{OLD}\n</analysis>\n<orders>\n{LINES}\n</orders>",
    "inner monologue": f"<inner_monologue>{OLD}</inner_monologue>{LINES}",
    "answer behind a draft": f"{OLD}\n<answer>\n{LINES}\n</answer>\nOr else\n{OLD}",
    "thought process, response": f"Here is my thought process:\n{OLD}\n"
    f"Here is my response:\n{LINES}",
    "Thinking: Answer:": f"**Thinking:**\n{OLD}\n\n**Answer:**\n{LINES}",
    "# Analysis, # Orders": f"## Analysis\n{OLD}\n\n## Orders\n{LINES}",
    "Final orders:": f"I could do this:\n{OLD}\n\nFinal orders:\n{LINES}",
    "final orders on a line": f"I might {OLD}\n\nFinal orders: {'; '.join(FINAL)}",
    "fenced thoughts": f"```thinking\n{OLD}\n```\n```\n{LINES}\n```",
    "two fenced lists": f"```json\n{json.dumps({'orders': DRAFT})}\n```\nBetter:\n```json\n"
    f"{json.dumps({'orders': FINAL})}\n```",
    "JSON": json.dumps({"thoughts": DRAFT, "plan": {"ideas": DRAFT}, "orders": FINAL}),
    "two lists": f"{OLD}\n\nNo, rather\n\n{LINES}",
}
# Nothing is decided in these: a reply that is cut off, or several orders for a unit.
UNDECIDED = {
    "think": f"<think>\nI could do this:\n{OLD}\nBut then",
    "mistral": f"[THINK]\n{OLD}\nBut then",
    "cohere": f"<|START_THINKING|>\n{OLD}",
    "channels": f"<|channel|>analysis<|message|>Maybe\n{OLD}",
    "channels without marks": f"analysisMaybe\n{OLD}",
    "reasoning": f"<reasoning>\n{OLD}\nBut then",
    "thought once more": f"<think>{OLD}</think>\n<think>\n{LINES}\nBut",
    "no list is whole": f"{OLD}\n\nNo, rather\n\n{FINAL[0]}\n{FINAL[1]}",
    "options": f"Possible orders:\n{OLD}",
}
