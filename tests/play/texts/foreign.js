async ([address, token]) => {
const body = JSON.stringify({step: 0, orders: ["A LON - PAR"]});
const ways = [
    {headers: {"X-Play-Token": token}},
    {headers: {"X-Play-Token": token}, method: "POST", body},
    {method: "POST", body, credentials: "include"},
    {method: "POST", body, mode: "no-cors"},
];
const seen = [];
for (const path of ["api/game", "api/orders", "play.js"])
    for (const way of ways)
        try { seen.push(await (await fetch(address + path, way)).text()); }
        catch (error) { seen.push("blocked"); }
const frame = document.createElement("iframe");
frame.src = address + "#" + token;
document.body.append(frame);
await new Promise(done => { frame.onload = done; setTimeout(done, 1500); });
try { seen.push(frame.contentDocument?.body?.innerText ?? "blocked"); }
catch (error) { seen.push("blocked"); }
return seen;
}
