// Class X7: an optional section of the spec is not there, and another section refers to it.
//
// A Pipeline has a ConfigMap with the settings of its collector and of its aggregator, if the spec
// contains these sections. The controller needs only Node.js and KUBECONFIG:
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
  const path = `/apis/${group}/namespaces/${namespace}/pipelines/${name}`;
  const pipeline = await client.get(path);
  if (!pipeline || pipeline.metadata.deletionTimestamp) return; // the garbage collector does the rest
  const {collector, aggregator} = pipeline.spec;
  const data = {};
  if (collector) data.collector = `buffer=${collector.buffer ?? 'memory'}\ntarget=${twin.target(pipeline)}\n`;
  if (aggregator) data.aggregator = `port=${aggregator.port ?? 24224}\n`;
  await ensure(client, configMap(pipeline, name, data));
  await observed(client, path, pipeline);
}

const pipelines = `/apis/${group}/pipelines`;
await run(client, pipelines, {[pipelines]: itself, '/api/v1/configmaps': owner}, reconcile);
