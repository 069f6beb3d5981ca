// Calls a function for every resource that may need work, and again after failed requests.
import {ApiError} from './api.mjs';

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// run reconciles the resources listed at path. For each path in watched, there is a function that
// returns the key of the resource that an object there concerns, or undefined. A key is a
// namespace and a name, separated by a slash. An error that is not an ApiError is a mistake in the
// controller, and ends the program.
export async function run(client, path, watched, reconcile) {
  const due = new Set();
  let wake = () => {};

  function enqueue(key) {
    if (key) due.add(key);
    wake();
  }

  // follow lists and watches forever. After each list, all resources are due, because events may
  // have been missed before the list.
  async function follow(watchedPath, keyOf) {
    for (;; await pause(100)) {
      try {
        const {metadata} = await client.call('GET', watchedPath);
        for (const resource of (await client.call('GET', path)).items) enqueue(itself(resource));
        for await (const object of client.events(watchedPath, metadata.resourceVersion)) enqueue(keyOf(object));
      } catch (err) {
        report(`watching ${watchedPath} ended`, err);
      }
    }
  }

  async function work() {
    const pauses = new Map();
    for (;;) {
      if (due.size === 0) await new Promise((resolve) => { wake = resolve; });
      const [key] = due;
      if (!key) continue;
      due.delete(key);
      try {
        await reconcile(...key.split('/'));
        pauses.delete(key);
      } catch (err) {
        report(`reconciling ${key} failed`, err);
        const ms = Math.min(2 * (pauses.get(key) ?? 10), 2000);
        pauses.set(key, ms);
        setTimeout(enqueue, ms, key);
      }
    }
  }

  await Promise.all([work(), ...Object.entries(watched).map(([at, keyOf]) => follow(at, keyOf))]);
}

function report(what, err) {
  if (!(err instanceof ApiError)) throw err;
  console.error(`${what}: ${err.message}`);
}

// itself returns the key of an object.
export const itself = ({metadata}) => `${metadata.namespace}/${metadata.name}`;

// owner returns the key of the resource that controls an object.
export function owner({metadata}) {
  const ref = metadata.ownerReferences?.find(({controller}) => controller);
  return ref && `${metadata.namespace}/${ref.name}`;
}
