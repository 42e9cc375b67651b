/** Tests the files of deploy/: the chart with four sets of values, and the compose file. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { settingsTable } from '@runyard/contract/settings/settings';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { imageKinds, startOf } from '../deploy/images/images.ts';
import {
  folder,
  full,
  hasTools,
  helm,
  least,
  podTemplateOf,
  type Resource,
  render,
  root,
  sets,
  skipped,
  tools,
  unsafe,
} from './deploy/chart.ts';

describe.skipIf(!hasTools)(`the chart${skipped}`, { tags: 'compiled' }, () => {
  test('passes helm lint', () => {
    expect(helm('lint', full)).toMatchObject({ status: 0 });
  });

  test('creates only objects that fit the schemas of Kubernetes', () => {
    const location = `${tools}/schemas/{{ .ResourceKind }}{{ .KindSuffix }}.json`;
    const words = ['-strict', '-summary', '-skip', 'ServiceMonitor,PrometheusRule', '-schema-location', location, '-'];
    const input = Object.values(sets)
      .map((values) => render(values).text)
      .join('\n---\n');
    const checked = spawnSync(path.join(tools, 'kubeconform'), words, { input, encoding: 'utf8' });
    expect(checked.stdout).toContain('Invalid: 0, Errors: 0, Skipped: 2');
  });

  test.each(Object.entries(sets))(
    'with values %s has no pod that runs as root, can write to its root file system, has a token that it does not need, or has no limits',
    (_, values) => {
      const pods = render(values).resources.flatMap((each) => {
        const template = podTemplateOf(each);
        return template === undefined ? [] : [{ name: each.metadata.name, pod: template.spec }];
      });
      expect(pods.length).toBeGreaterThan(0);
      for (const { name, pod } of pods) {
        expect(pod.securityContext).toMatchObject({
          runAsNonRoot: true,
          runAsUser: 10001,
          seccompProfile: { type: 'RuntimeDefault' },
        });
        expect(pod.automountServiceAccountToken, name).toBe(name === 'ry-worker');
        expect(pod.hostNetwork).toBeUndefined();
        expect((pod.volumes ?? []).filter((volume) => 'hostPath' in volume)).toEqual([]);
        for (const container of pod.containers) {
          expect(container.securityContext).toEqual({
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          });
          expect(Object.keys(container.resources?.limits ?? {}).sort()).toEqual(['cpu', 'ephemeral-storage', 'memory']);
          const names = (container.env ?? []).map((each) => each.name.replace(/_FILE$/, ''));
          expect(new Set(names).size).toBe(names.length);
          const isKnown = (name: string) => name in settingsTable || name.replace(/_FILE$/, '') in settingsTable;
          const unknown = (container.env ?? []).filter(({ name }) => name.startsWith('RUNYARD_') && !isKnown(name));
          expect(unknown).toEqual([]);
          // Secrets are files.
          const secrets = (container.env ?? []).filter((each) => 'secret' in (settingsTable[each.name as never] ?? {}));
          expect(secrets).toEqual([]);
        }
      }
    },
  );

  test('gives the worker exactly the rights that docs/isolation.md lists, and only in the namespace of the runs', () => {
    const roles = render(least).resources.filter(({ kind }) => /Role/.test(kind));
    expect(roles.map(({ kind, metadata }) => [kind, metadata.namespace])).toEqual([
      ['Role', 'runyard-runs'],
      ['RoleBinding', 'runyard-runs'],
    ]);
    const [documented] = [
      ...readFileSync(path.join(root, 'docs/isolation.md'), 'utf8').matchAll(/```yaml\n([\s\S]*?)```/g),
    ]
      .map(([, text = '']) => parse(text) as Resource)
      .filter(({ kind }) => kind === 'Role');
    expect(roles[0]?.rules).toEqual(documented?.rules);
  });

  test('restricts network connections by network policies, unless a value removes these policies', () => {
    const policies = (values: object) =>
      render(values)
        .resources.filter(({ kind }) => kind === 'NetworkPolicy')
        .map(({ metadata }) => metadata.name);
    expect(policies(least).sort()).toEqual(['ry-closed', 'ry-service', 'ry-worker']);
    expect(policies(unsafe)).toEqual([]);
  });

  test('passes the addresses of the ingress proxies to the service as RUNYARD_TRUSTED_PROXIES', () => {
    const named = (values: object) => /RUNYARD_TRUSTED_PROXIES, value: (".*")/.exec(render(values).text)?.[1];
    expect(named(full)).toBe('"10.244.0.0/16,fd00::/64"');
    expect(named(least)).toBeUndefined();
  });

  test('gives services and backups the files of sign-on, of own authorities and of further volumes', () => {
    for (const name of ['ry-service', 'ry-backup']) {
      const found = render(full).resources.find(
        ({ metadata, spec }) =>
          metadata.name === name && spec !== undefined && podTemplateOf({ kind: '', metadata, spec }),
      );
      const pod = found && podTemplateOf(found)?.spec;
      const [container] = pod?.containers ?? [];
      const settings = Object.fromEntries((container?.env ?? []).map((each) => [each.name, each.value]));
      expect(settings).toMatchObject({
        RUNYARD_OIDC_FILE: '/secrets/sign-on/sign-on.yaml',
        RUNYARD_CA_FILE: '/ca/ca.pem',
        RUNYARD_DATABASE_URL_FILE: '/secrets/database/url',
      });
      expect('HTTPS_PROXY' in settings).toBe(true);
      const text = JSON.stringify(pod);
      expect(text).toContain('{"name":"sign-on","items":[{"key":"oidc.yaml","path":"sign-on/sign-on.yaml"}]}');
      expect(text).toContain(
        '{"name":"ca","configMap":{"name":"authorities","items":[{"key":"company.pem","path":"ca.pem"}]}}',
      );
      expect(text).toContain('{"mountPath":"/policy","name":"policy","readOnly":true}');
    }
  });

  test('leaves users and groups to the cluster where it chooses them, as OpenShift does', () => {
    const { resources } = render({ ...full, security: { userId: null, groupId: null } });
    for (const each of resources) {
      const context = podTemplateOf(each)?.spec.securityContext;
      if (context === undefined) continue;
      expect(context).toEqual({
        runAsNonRoot: true,
        fsGroupChangePolicy: 'OnRootMismatch',
        seccompProfile: { type: 'RuntimeDefault' },
      });
    }
  });

  test('has the alerts of deploy/prometheus, for the job that its ServiceMonitor sets', () => {
    const rules = render(full).resources.find(({ kind }) => kind === 'PrometheusRule');
    const alerts = parse(
      readFileSync(path.join(root, 'deploy/prometheus/alerts.yaml'), 'utf8').replaceAll(
        'job="runyard"',
        'job="agents"',
      ),
    );
    expect(rules?.spec).toEqual(alerts);
    expect(JSON.stringify(rules)).toContain('up{job=\\"agents\\"}');
    expect(JSON.stringify(rules)).toContain('{{ $labels.instance }}');
  });

  test('prints a warning after an installation for each unsafe value', () => {
    const warnings = (values: object) =>
      [...helm('install', values).output.matchAll(/^WARNING: ([\w.]+)/gm)].map(([, name]) => name);
    expect(warnings(full)).toEqual([]);
    const open = { ingress: { enabled: true, host: 'a.example' }, metrics: { enabled: true } };
    expect(warnings({ ...unsafe, metrics: { enabled: true, existingSecret: 'metrics' } })).not.toContain(
      'metrics.existingSecret',
    );
    expect(warnings({ ...unsafe, ...open })).toEqual([
      'unsafe.shareKernelOfNodes',
      'unsafe.withoutNetworkPolicies',
      'metrics.existingSecret',
      'unsafe.allowCloudMetadata',
      'runs.createNamespace',
      'ingress.trustedProxies',
    ]);
  });

  test.each([
    ['an unknown name', { ...least, sevice: {} }, /additional properties 'sevice' not allowed/],
    ['no RuntimeClass', { ...least, runs: {} }, /name a RuntimeClass .* or set unsafe\.shareKernelOfNodes=true/],
    [
      'runs beside the service',
      { ...least, runs: { ...least.runs, namespace: 'runyard' } },
      /runs\.namespace: must be another/,
    ],
    ['another backend', { ...least, worker: { env: { RUNYARD_SANDBOX: 'none' } } }, /RUNYARD_SANDBOX/],
    ['a second list of proxies', { ...least, service: { env: { RUNYARD_TRUSTED_PROXIES: '' } } }, /TRUSTED_PROXIES/],
    ['a secret in plain sight', { ...least, service: { env: { RUNYARD_MODEL_KEY: 'k' } } }, /RUNYARD_MODEL_KEY/],
    ['a backup without a volume', { ...least, backup: { enabled: true } }, /existingClaim/],
    ['no database', { ...least, database: {} }, /database\/existingSecret/],
    ['a worker without limits', { ...least, worker: { resources: null } }, /resources/],
    ['a service without limits', { ...least, service: { resources: { limits: null } } }, /limits/],
    ['an open metrics port', { ...least, metrics: { enabled: true, fromNamespaces: null } }, /fromNamespaces/],
  ])('refuses %s', (_, values, reason) => {
    const { status, output } = helm('template', values);
    expect(status).not.toBe(0);
    expect(output).toMatch(reason);
  });
});

describe('the compose file', () => {
  interface ComposeService {
    readonly image?: string;
    readonly read_only?: boolean;
    readonly cap_drop?: readonly string[];
    readonly security_opt?: readonly string[];
    readonly mem_limit?: string;
    readonly environment?: Readonly<Record<string, string>>;
    readonly secrets?: readonly string[];
    readonly networks?: readonly string[];
    readonly ports?: readonly string[];
  }
  const file = path.join(root, 'deploy/compose.yaml');
  const compose = parse(readFileSync(file, 'utf8'), { merge: true }) as {
    services: Record<string, ComposeService>;
    secrets: Record<string, { file: string }>;
  };

  test('hardens service and worker, limits the memory of every container, and publishes ports on loopback only', () => {
    for (const name of ['service', 'worker']) {
      const item = compose.services[name];
      expect(item).toMatchObject({ read_only: true, cap_drop: ['ALL'] });
      expect(item?.security_opt).toContain('no-new-privileges:true');
      const settings = Object.keys(item?.environment ?? {}).map((each) => each.replace(/_FILE$/, ''));
      expect(settings.filter((each) => each.startsWith('RUNYARD_') && !(each in settingsTable))).toEqual([]);
    }
    expect(Object.values(compose.services).filter(({ mem_limit }) => mem_limit === undefined)).toEqual([]);
    expect(Object.values(compose.services).flatMap(({ ports = [] }) => ports)).toEqual(['127.0.0.1:4180:4180']);
    expect(compose.services.worker?.networks).not.toContain('storage');
    expect(compose.services.worker?.secrets).toEqual(['worker-key']);
  });

  test('gets each secret from deploy/make-secrets, and a second call keeps the secrets', () => {
    const place = path.join(folder, 'secrets');
    const make = () => execFileSync(path.join(root, 'deploy/make-secrets'), [place]);
    const read = () =>
      Object.values(compose.secrets).map((secret) =>
        readFileSync(path.join(place, path.basename(secret.file)), 'utf8'),
      );
    make();
    const first = read();
    make();
    expect(read()).toEqual(first);
    expect(new Set(first).size).toBe(first.length);
    for (const { secrets = [] } of Object.values(compose.services))
      for (const name of secrets) expect(Object.keys(compose.secrets)).toContain(name);
    const text = (name: string): string => readFileSync(path.join(place, name), 'utf8').trim();
    expect(settingsTable.RUNYARD_SECRETS_KEY.read(text('secrets-key'))).toHaveProperty('value');
    expect(settingsTable.RUNYARD_BOOTSTRAP_KEY.read(text('operator-key'))).toHaveProperty('value');
    expect(settingsTable.RUNYARD_WORKER_KEY.read(text('worker-key'))).toHaveProperty('value');
    expect(settingsTable.RUNYARD_DATABASE_URL.read(text('database-url'))).toHaveProperty('value');
    expect(JSON.parse(text('s3-config')).identities).toHaveLength(1);
  });

  test.skipIf(!hasTools)(`is valid by the Compose Specification${skipped}`, { tags: 'compiled' }, () => {
    const words = ['--file', file, 'config', '--quiet'];
    const { status, stderr } = spawnSync(path.join(tools, 'docker-compose'), words, { encoding: 'utf8' });
    expect(status, stderr).toBe(0);
  });
});

test('the chart and the compose file name the images of this version', () => {
  const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');
  const { version } = JSON.parse(read('package.json')) as { version: string };
  expect(parse(read('deploy/helm/runyard/Chart.yaml'))).toMatchObject({ version, appVersion: version });
  for (const kind of imageKinds) expect(read('deploy/compose.yaml')).toContain(`:-runyard-${kind}:${version}}`);
});

describe('deploy/Dockerfile', () => {
  const stages = readFileSync(path.join(root, 'deploy/Dockerfile'), 'utf8')
    .replaceAll('\\\n', '')
    .split(/^FROM /m);

  test.each(imageKinds)('starts the %s with the same user and command as the image of bin/images', (kind) => {
    const start = startOf(kind);
    const stage = stages.find((text) => text.startsWith(`scratch AS ${kind}\n`)) ?? '';
    const line = (name: string): string => new RegExp(`^${name} (.*)$`, 'm').exec(stage)?.[1] ?? '';
    expect(line('USER')).toBe(start.User);
    expect(line('ENV').split(' ')).toEqual(start.Env);
    expect(JSON.parse(line('ENTRYPOINT'))).toEqual(start.Entrypoint);
    expect(line('WORKDIR')).toBe(start.WorkingDir);
    expect(line('VOLUME')).toBe(Object.keys(start.Volumes)[0]);
    expect(line('EXPOSE')).toBe(Object.keys(start.ExposedPorts ?? {}).join());
    const check = line('HEALTHCHECK').split('CMD ')[1];
    expect(check === undefined ? undefined : ['CMD', ...JSON.parse(check)]).toEqual(start.Healthcheck?.Test);
  });
});
