// A client of the Kubernetes API that needs only Node.js.
import {readFileSync} from 'node:fs';
import http from 'node:http';
import https from 'node:https';

// ApiError is a response that reports a failure, or a request that got no complete response.
// Its code is the HTTP status, or 0.
export class ApiError extends Error {
  constructor(code, message) {
    super(`${code}: ${message}`);
    this.code = code;
  }
}

// Client communicates with the cluster of a kubeconfig, which must be written in JSON.
export class Client {
  #url;
  #headers = {accept: 'application/json'};
  #tls;

  constructor(path) {
    const config = JSON.parse(readFileSync(path, 'utf8'));
    const {context} = named(config.contexts, config['current-context']);
    const {cluster} = named(config.clusters, context.cluster);
    const {user} = named(config.users, context.user);
    this.#url = new URL(cluster.server);
    if (user.token) this.#headers.authorization = `Bearer ${user.token}`;
    this.#tls = {
      ca: content(cluster, 'certificate-authority'),
      cert: content(user, 'client-certificate'),
      key: content(user, 'client-key'),
      rejectUnauthorized: !cluster['insecure-skip-tls-verify'],
    };
  }

  // call sends one request and returns the object in the response.
  async call(method, path, body) {
    const response = await this.#send(method, path, body);
    let text = '';
    for await (const chunk of chunks(response)) text += chunk;
    if (response.statusCode >= 300) throw new ApiError(response.statusCode, text.slice(0, 200));
    return JSON.parse(text);
  }

  // get reads an object, and returns undefined if the object does not exist.
  async get(path) {
    try {
      return await this.call('GET', path);
    } catch (err) {
      if (err.code === 404) return undefined;
      throw err;
    }
  }

  // events yields the objects of the events after a resource version. It ends when the watch
  // ends.
  async *events(path, version) {
    const response = await this.#send('GET', `${path}?watch=1&resourceVersion=${version}`);
    if (response.statusCode >= 300) {
      response.destroy();
      throw new ApiError(response.statusCode, 'the watch was refused');
    }
    for await (const line of lines(response)) {
      const {type, object} = JSON.parse(line);
      if (type === 'ERROR') throw new ApiError(object.code, object.message);
      yield object;
    }
  }

  #send(method, path, body) {
    const {request} = this.#url.protocol === 'https:' ? https : http;
    const url = new URL(this.#url.pathname.replace(/\/$/, '') + path, this.#url);
    const headers = body ? {...this.#headers, 'content-type': 'application/json'} : this.#headers;
    return new Promise((resolve, reject) => {
      const sent = request(url, {...this.#tls, method, headers, agent: false}, resolve);
      sent.on('error', (err) => reject(new ApiError(0, err.message)));
      sent.end(body && JSON.stringify(body));
    });
  }
}

const named = (entries, name) => entries.find((entry) => entry.name === name);

// content returns the content of a certificate or key, which a kubeconfig contains or names.
function content(holder, field) {
  const data = holder[`${field}-data`];
  if (data) return Buffer.from(data, 'base64');
  return holder[field] && readFileSync(holder[field]);
}

async function* lines(response) {
  let rest = '';
  for await (const chunk of chunks(response)) {
    const complete = (rest + chunk).split('\n');
    rest = complete.pop();
    yield* complete;
  }
}

async function* chunks(response) {
  response.setEncoding('utf8');
  try {
    for await (const chunk of response) yield chunk;
  } catch (err) {
    throw new ApiError(0, err.message);
  }
}
