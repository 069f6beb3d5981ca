// Class X8: with a value in one field, the controller changes its child again in each reconcile.
//
// An Archive has a ConfigMap with the names of its keys: first one that the controller chooses, and
// then those in the spec. The controller needs only Node.js and KUBECONFIG:
//
//	node controller.mjs [--repaired]
import {Client} from '../internal/node/api.mjs';
import {configMap, ensure, observed} from '../internal/node/child.mjs';
import {itself, owner, run} from '../internal/node/loop.mjs';
import * as bug from './bug.mjs';
import * as repaired from './repaired.mjs';

const group = 'bugs.koboshi.dev/v1';
const twin = process.argv.includes('--repaired') ? repaired : bug;
const client = new Client(process.env.KUBECONFIG);

async function reconcile(namespace, name) {
  const path = `/apis/${group}/namespaces/${namespace}/archives/${name}`;
  const archive = await client.get(path);
  if (!archive || archive.metadata.deletionTimestamp) return; // the garbage collector does the rest
  const have = await client.get(`/api/v1/namespaces/${namespace}/configmaps/${name}`);
  const stored = (have?.data?.keys ?? '').split('\n').filter(Boolean);
  const keys = twin.keys(`managed-${name}`, stored, archive.spec.keys ?? []);
  await ensure(client, configMap(archive, name, {size: String(archive.spec.size), keys: keys.join('\n')}));
  await observed(client, path, archive);
}

const archives = `/apis/${group}/archives`;
await run(client, archives, {[archives]: itself, '/api/v1/configmaps': owner}, reconcile);
