/** Starts a Prometheus server with the scrape configuration and the alert rules that the documentation gives to operators. */
import { spawn } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { freePort } from './free-port.ts';
import { eventually, killHard } from './system.ts';

const root = path.resolve(import.meta.dirname, '../..');

export interface Prometheus {
  /** Returns `data` of an answer of the HTTP API, and throws if the answer is an error. */
  ask<T>(path: string, query?: Readonly<Record<string, string>>): Promise<T>;
  stop(): Promise<void>;
}

/** Starts Prometheus. It scrapes `port` twice a second with the token, and evaluates the rules of `deploy/prometheus/alerts.yaml`. */
export async function startPrometheus(port: number, token: string): Promise<Prometheus> {
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-prometheus-'));
  const page = await readFile(path.join(root, 'docs/metrics.md'), 'utf8');
  const [documented = ''] = [...page.matchAll(/```yaml\n(scrape_configs:.*?)```/gs)].map(([, yaml]) => yaml);
  const scrapes = documented.replace('127.0.0.1:9464', `127.0.0.1:${port}`);
  await writeFile(
    path.join(folder, 'prometheus.yml'),
    `global: { scrape_interval: 500ms, evaluation_interval: 500ms }\n${scrapes}`,
  );
  await writeFile(path.join(folder, 'metrics-token'), token);
  await copyFile(path.join(root, 'deploy/prometheus/alerts.yaml'), path.join(folder, 'alerts.yaml'));
  const listen = `127.0.0.1:${await freePort()}`;
  const flags = ['--config.file=prometheus.yml', '--storage.tsdb.path=data', `--web.listen-address=${listen}`];
  const child = spawn('prometheus', [...flags, '--log.level=error'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ask = async <T>(place: string, query: Readonly<Record<string, string>> = {}): Promise<T> => {
    const answer = await fetch(`http://${listen}/api/v1/${place}?${new URLSearchParams(query)}`);
    const body = (await answer.json()) as { readonly status: string; readonly error?: string; readonly data: T };
    if (body.status !== 'success') throw new Error(`${query.query ?? place}: ${body.error}`);
    return body.data;
  };
  await eventually('start of Prometheus', async () => {
    if (child.exitCode !== null) throw new Error(`Prometheus exited with ${child.exitCode}`);
    return await ask('status/buildinfo').catch(() => undefined);
  });
  return {
    ask,
    stop: async () => {
      await killHard(child);
      await rm(folder, { recursive: true, force: true });
    },
  };
}
