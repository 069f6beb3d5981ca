// Class G2: the controller's objects have no owner and are never deleted.
//
// For each template of a SecretSet there is one Secret.
//
//	node controller.js [--repaired]
import {CoreV1Api, CustomObjectsApi, KubeConfig, Watch} from '@kubernetes/client-node';
import * as bug from './bug.js';
import {label} from './label.js';
import * as repaired from './repaired.js';

const group = 'bugs.koboshi.dev', version = 'v1', plural = 'secretsets';
const twin = process.argv.includes('--repaired') ? repaired : bug;

const config = new KubeConfig();
config.loadFromDefault();
for (const cluster of config.clusters) {
  // The client accepts plain HTTP only if TLS verification is turned off.
  if (cluster.server.startsWith('http:')) cluster.skipTLSVerify = true;
}
const core = config.makeApiClient(CoreV1Api);
const custom = config.makeApiClient(CustomObjectsApi);
const watch = new Watch(config);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// due holds the keys of the SecretSets to reconcile.
const due = new Set();
let wake = () => {};

function enqueue(namespace, name) {
  due.add(`${namespace}/${name}`);
  wake();
}

const listSets = () => custom.listClusterCustomObject({group, version, plural});
const listSecrets = () => core.listSecretForAllNamespaces({labelSelector: label});

// follow lists and watches forever. After each list all SecretSets are due, because
// events may have been missed before the list.
async function follow(list, path, query, changed) {
  for (;; await pause(100)) {
    try {
      const {metadata} = await list();
      for (const set of (await listSets()).items) enqueue(set.metadata.namespace, set.metadata.name);
      await events(path, {...query, resourceVersion: metadata.resourceVersion}, changed);
    } catch (err) {
      console.error(`watching ${path} ended: ${err.message ?? err}`);
    }
  }
}

// events calls changed for each event, until the watch ends.
async function events(path, query, changed) {
  let ended;
  const end = new Promise((resolve) => { ended = resolve; });
  const request = await watch.watch(path, query, (type, object) => {
    if (type === 'ERROR') ended();
    else if (type !== 'BOOKMARK') changed(object);
  }, ended);
  await end;
  request.abort();
}

// work reconciles one SecretSet after another, and retries after failures at growing
// intervals.
async function work() {
  const pauses = new Map();
  for (;;) {
    if (due.size === 0) await new Promise((resolve) => { wake = resolve; });
    const [key] = due;
    due.delete(key);
    try {
      await reconcile(...key.split('/'));
      pauses.delete(key);
    } catch (err) {
      console.error(`reconciling ${key}: ${err.message ?? err}`);
      const ms = Math.min(2 * (pauses.get(key) ?? 10), 2000);
      pauses.set(key, ms);
      setTimeout(() => enqueue(...key.split('/')), ms);
    }
  }
}

async function reconcile(namespace, name) {
  const set = await found(custom.getNamespacedCustomObject({group, version, namespace, plural, name}));
  if (!set || set.metadata.deletionTimestamp) return;
  const templates = set.spec.templates ?? [];
  for (const template of templates) await ensureSecret(set, template);
  await twin.prune(core, set, templates);
  if (set.status?.count === templates.length) return;
  set.status = {count: templates.length};
  await custom.replaceNamespacedCustomObjectStatus({group, version, namespace, plural, name, body: set});
}

async function ensureSecret(set, template) {
  const {namespace} = set.metadata;
  const name = `${set.metadata.name}-${template}`;
  const labels = {[label]: set.metadata.name};
  const data = {template: Buffer.from(template).toString('base64')};
  const ownerReferences = twin.owners(set);
  const have = await found(core.readNamespacedSecret({namespace, name}));
  if (!have) {
    await core.createNamespacedSecret({namespace, body: {metadata: {namespace, name, labels, ownerReferences}, data}});
    return;
  }
  if (have.metadata.deletionTimestamp) return; // the deletion will cause an event
  const same = have.data?.template === data.template && Object.keys(have.data).length === 1 &&
    have.metadata.labels?.[label] === labels[label] && owns(have, ownerReferences);
  if (same) return;
  have.data = data;
  have.metadata.labels = {...have.metadata.labels, ...labels};
  have.metadata.ownerReferences = ownerReferences;
  await core.replaceNamespacedSecret({namespace, name, body: have});
}

// owns reports whether an object has the given owners.
function owns(object, owners = []) {
  const uids = (refs = []) => refs.map((ref) => `${ref.uid}/${ref.controller}`).join();
  return uids(object.metadata.ownerReferences) === uids(owners);
}

// found returns the object that the function read returns, or undefined if the object does
// not exist.
async function found(read) {
  try {
    return await read;
  } catch (err) {
    if (err.code === 404) return undefined;
    throw err;
  }
}

follow(listSets, `/apis/${group}/${version}/${plural}`, {},
  ({metadata}) => enqueue(metadata.namespace, metadata.name));
// If the label is removed from a Secret, the watch reports this as a deletion because of
// its selector.
follow(listSecrets, '/api/v1/secrets', {labelSelector: label},
  ({metadata}) => enqueue(metadata.namespace, metadata.labels[label]));
work();
