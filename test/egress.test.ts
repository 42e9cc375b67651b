/**
 * Tests the network access of runs in a whole system. The environment of a run allows one server of this machine: programs in the
 * sandbox reach this server and no other one.
 */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasEnded } from './support/run-kinds.ts';
import { eventually, type System, sandboxProblem, startSystem } from './support/system.ts';

let system: System;
const seen: string[] = [];
/** The servers answer requests for /hold only when the test resolves this promise. */
const held = Promise.withResolvers<void>();
async function serve(name: string, location?: string): Promise<{ server: Server; url: string; authority: string }> {
  const server = createServer((request, response) => {
    seen.push(`${name} ${request.url}`);
    if (request.url === '/hold') return void held.promise.then(() => response.end(`answer of ${name}\n`));
    if (request.url === '/away' && location !== undefined) response.writeHead(302, { location });
    response.end(`answer of ${name}\n`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const authority = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { server, authority, url: `http://${authority}` };
}

const hasJava = spawnSync('javac', ['--version']).status === 0;

interface Ended {
  readonly output: string;
  readonly state: string | undefined;
  readonly timeline: TimelineEvent[];
}

/** Makes programs use the proxy for loopback addresses too, because the servers of the test listen there. */
const proxied = 'export NO_PROXY= no_proxy=;';
const fetchOf = (url: string): string =>
  `node -e 'fetch("${url}").then(async (r) => console.log(r.status, await r.text()), (e) => console.log("failed", e.cause?.message))'`;

describe.skipIf(sandboxProblem !== null)('a sandbox', () => {
  let allowed: Awaited<ReturnType<typeof serve>>;
  let other: Awaited<ReturnType<typeof serve>>;
  let number = 0;

  beforeAll(async () => {
    other = await serve('other');
    allowed = await serve('allowed', other.url);
    system = await startSystem({
      env: {
        RUNYARD_EGRESS: `${allowed.authority},10.9.8.7`,
        RUNYARD_EGRESS_PRIVATE_NETWORKS: '127.0.0.1/32',
      },
    });
  });
  afterAll(async () => {
    await system.stop();
    for (const { server } of [allowed, other]) server.close();
  });

  async function run(script: string, environment: object): Promise<Ended> {
    const config = { name: `Hosts ${++number}`, ...environment };
    const { uid } = await system.call<{ uid: string }>('POST', '/agent/environments', { config }, 201);
    const prompt = `\`\`\`sh\n${script}\n\`\`\``;
    const id = await system.createRun(prompt, { config: { environment_id: uid } });
    const { state } = await system.until(id, hasEnded);
    // Wait for the end of the sandbox, because only then does the worker report the number of denied connections.
    const timeline = await eventually('the end of the sandbox', async () => {
      const { events } = await system.call<{ events: TimelineEvent[] }>('GET', `/agent/runs/${id}/timeline`);
      return events.some(({ event_type }) => event_type === 'vm_shutdown') && events;
    });
    const conversation = await system.call<object>('GET', `/agent/runs/${id}/conversation`);
    return { output: JSON.stringify(conversation), state, timeline };
  }
  test('that asks a person before it connects to a host continues with the answer, and reaches no host after a denial', async () => {
    const config = { name: 'Asked', network: { allowed_hosts: [allowed.authority] } };
    const { uid } = await system.call<{ uid: string }>('POST', '/agent/environments', { config }, 201);
    const get = (path: string) => fetchOf(`${allowed.url}${path}`);
    const script = `${proxied} ${get('/asked')}; ${get('/again')}`;
    const rules = { approval_policy: 'ask', approval_rules: [{ host: allowed.authority }] };
    const id = await system.createRun(`\`\`\`sh\n${script}\n\`\`\``, { config: { environment_id: uid, ...rules } });
    for (const decision of ['approve', 'deny']) {
      const { blocked_on: asked } = await system.until(id, ({ state }) => state === 'BLOCKED');
      expect(asked).toMatchObject({ title: `one connection to ${allowed.authority}`, enforced_by: 'proxy' });
      const body = { decision, request_id: asked?.request_id };
      await system.call('POST', `/agent/runs/${id}/followups`, body, 200);
    }
    await system.until(id, hasEnded);
    const conversation = JSON.stringify(await system.call('GET', `/agent/runs/${id}/conversation`));
    expect(conversation).toContain('answer of allowed');
    expect(seen.splice(0)).toEqual(['allowed /asked']);
  });

  const denied = (timeline: readonly TimelineEvent[]) =>
    timeline.filter(({ event_type }) => event_type === 'connection_denied').map(({ payload }) => payload ?? {});

  test('reaches the hosts that its environment allows in setup commands and in the run, and the timeline shows each denied host', async () => {
    const redirected = `${proxied} ${fetchOf(`${allowed.url}/away`)}`;
    const direct = `node -e 'require("net").connect(${new URL(other.url).port}, "127.0.0.1").on("error", (e) => console.log("direct", e.code))'`;
    const script = [
      `${proxied} ${fetchOf(`${allowed.url}/run`)}`,
      redirected,
      `${proxied} ${fetchOf('http://10.9.8.7/')}`,
      fetchOf('http://name.example/'),
      direct,
      `cat > flood.mjs <<'END'\nimport net from 'node:net';\nconst port = new URL(process.env.HTTPS_PROXY).port;\nfor (let n = 0; n < 60; n++) await new Promise((done) => net.connect(port, '127.0.0.1', function () { this.write('CONNECT h' + n + '.example:443 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); this.resume(); }).on('close', done));\nEND\nnode flood.mjs`,
      'echo sockets: $(ls /run/runyard)',
    ].join('\n');
    const ended = await run(script, {
      setup_commands: [`${proxied} ${fetchOf(`${allowed.url}/setup`)} | grep answer`],
      network: { allowed_hosts: [allowed.authority, '10.9.8.7', 'unknown.example'], presets: ['cargo'] },
    });
    expect(ended.state).toBe('SUCCEEDED');
    expect(seen).toEqual(['allowed /setup', 'allowed /run', 'allowed /away']);
    expect(ended.output).toContain('200 answer of allowed');
    expect(ended.output).toContain('direct ECONNREFUSED');
    expect(ended.output).not.toContain('answer of other');
    expect(ended.output).toMatch(/sockets: egress\.sock relay\.sock/);

    const ready = ended.timeline.find(({ event_type }) => event_type === 'worker_container_ready');
    expect(ready?.payload?.network).toEqual({
      allowed_hosts: [allowed.authority, '10.9.8.7'],
      refused_hosts: [
        'unknown.example',
        ...['index.crates.io:443', 'static.crates.io:443', 'crates.io:443', 'static.rust-lang.org:443'],
      ],
      is_enforced: true,
    });
    const events = denied(ended.timeline);
    expect(events.slice(0, 3)).toMatchObject([
      { number: 1, host: '127.0.0.1', port: Number(new URL(other.url).port), reason: 'host_not_allowed' },
      { number: 2, host: '10.9.8.7', port: 80, reason: 'private_address' },
      { number: 3, host: 'name.example', port: 80, reason: 'host_not_allowed' },
    ]);
    expect(events[1]?.message).toContain('not public');
    // The timeline shows the first 20 denied connections one by one, and then one event with the total.
    expect(events.map((event) => event.number)).toEqual(Array.from({ length: 21 }, (_, index) => index + 1));
    expect(events[20]).toMatchObject({ total: 63 });
  });

  test.skipIf(!hasJava)('runs Java, whose programs use the proxy and reach the sandbox itself without it', async () => {
    const program = `import java.net.*; import java.net.http.*; import com.sun.net.httpserver.*;
public class F { public static void main(String[] a) throws Exception {
  var own = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
  own.createContext("/", x -> { x.sendResponseHeaders(201, -1); x.close(); }); own.start();
  var url = a.length > 0 ? a[0] : "http://localhost:" + own.getAddress().getPort();
  var c = (HttpURLConnection) new URL(url + "/old").openConnection(); System.out.println("old client " + c.getResponseCode());
  var get = HttpRequest.newBuilder(URI.create(url + "/new")).build();
  System.out.println("new client " + HttpClient.newHttpClient().send(get, HttpResponse.BodyHandlers.discarding()).statusCode());
  own.stop(0);
} }`;
    // A Java runtime never uses the proxy for loopback addresses, where the server of the test is, unless this list is empty.
    const viaProxy = 'JAVA_TOOL_OPTIONS="$JAVA_TOOL_OPTIONS -Dhttp.nonProxyHosts="';
    const script = `cat > F.java <<'END'\n${program}\nEND\njavac F.java && ${viaProxy} java F ${allowed.url} && java F`;
    const ended = await run(script, {
      network: { allowed_hosts: [allowed.authority] },
      // The further options save half of the processor time.
      variables: { JAVA_TOOL_OPTIONS: '-Dof.environment=yes -XX:TieredStopAtLevel=1 -XX:+UseSerialGC' },
    });
    expect(ended.output).toMatch(/old client 200.*new client 200.*old client 201.*new client 201/);
    expect(ended.output).toContain('-Dof.environment=yes');
    expect(ended.state).toBe('SUCCEEDED');
  });

  test('cannot reach hosts that only the environment of another running sandbox allows', async () => {
    const network = (...hosts: string[]) => ({ network: { allowed_hosts: hosts } });
    const first = run(`${proxied} ${fetchOf(`${allowed.url}/hold`)}`, network(allowed.authority));
    await expect.poll(() => seen).toContain('allowed /hold');
    // The second run executes while the first sandbox has an open connection.
    const second = await run(`${proxied} ${fetchOf(`${allowed.url}/second`)}`, network('10.9.8.7'));
    expect(second.output).not.toContain('answer of allowed');
    expect(seen).not.toContain('allowed /second');
    expect(denied(second.timeline)).toMatchObject([{ host: '127.0.0.1', reason: 'host_not_allowed' }]);
    held.resolve();
    const { output, timeline } = await first;
    expect(output).toContain('200 answer of allowed');
    expect(denied(timeline)).toEqual([]);
  });

  test('has no proxy if its environment allows no hosts', async () => {
    const ended = await run('env | grep -ci _proxy; ls /run/runyard', {});
    expect(ended.output).not.toContain('egress.sock');
    expect(
      ended.timeline.find(({ event_type }) => event_type === 'worker_container_ready')?.payload,
    ).not.toHaveProperty('network');
    expect(denied(ended.timeline)).toEqual([]);
  });
});
