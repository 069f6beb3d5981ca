// The state of the page is in the fragment of its address, so that every view has a link.
// The fragment is never sent over the network.

export function state() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

// link returns the fragment of a view. The token stays, and everything else is replaced.
export function link(values) {
  const all = new URLSearchParams();
  const token = state().token;
  if (token) all.set("token", token);
  for (const [key, value] of Object.entries(values)) {
    if (value !== undefined && value !== "") all.set(key, value);
  }
  return "#" + all;
}

export const nameOf = (ref) =>
  [ref.group ? `${ref.kind}.${ref.group}` : ref.kind, ref.namespace, ref.name].filter(Boolean).join("/");

export const shortName = (ref) => `${ref.kind} ${ref.namespace ? ref.namespace + "/" : ""}${ref.name}`;

function request(path, options = {}) {
  return fetch("api/v1/" + path, { headers: { Authorization: "Bearer " + (state().token ?? "") }, ...options });
}

async function answer(response) {
  const body = await response.json();
  if (!response.ok) throw new Error(body.error);
  return body;
}

// ask returns the answer to a question.
export async function ask(question, values = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) {
    if (value !== undefined && value !== "") query.set(key, value);
  }
  return answer(await request(`${question}?${query}`));
}

// offersReplay reports whether reviews can be sent again.
export const offersReplay = async () => (await answer(await request("replay"))).offered;

// replay sends the review of an entry again, and returns the call of the webhook. With the policy
// of the page, a browser could hide the origin of a POST, and the server would refuse it.
export const replay = async (seq) => answer(await request(`replay?seq=${seq}`, { method: "POST", referrerPolicy: "same-origin" }));

// follow calls changed whenever the session has grown, and lost with the state of the
// connection. It connects again after the end of a stream.
export async function follow(changed, lost) {
  for (;;) {
    try {
      const response = await request("events");
      if (!response.ok) throw new Error((await response.json()).error);
      lost("");
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        text += value;
        const events = text.split("\n\n");
        text = events.pop();
        const data = events.at(-1)?.match(/^data: (.*)$/m);
        if (data) changed(JSON.parse(data[1]).seq);
      }
      lost("The session has ended.");
    } catch (error) {
      lost(error instanceof TypeError ? "The session has ended." : error.message);
    }
    await new Promise((again) => setTimeout(again, 2000));
  }
}

// save downloads the complete session as a file.
export async function save() {
  const response = await request("export");
  const url = URL.createObjectURL(await response.blob());
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = "session.trace.jsonl";
  anchor.click();
  URL.revokeObjectURL(url);
}
