import { fileVariable, type SettingName, settingsTable } from '@runyard/contract/settings/settings';
import { proxyVariables } from '@runyard/system/outgoing/proxy-settings';

/** Variables that every program needs. */
const common = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'LANG',
  'LC_ALL',
  'LC_CTYPE',
  'TZ',
  'TMPDIR',
  'XDG_RUNTIME_DIR',
  'NODE_COMPILE_CACHE',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  ...proxyVariables,
];

/** Returns the names of the variables of the AWS SDK if the service stores blobs in a bucket. */
const forBucket = (env: Readonly<Record<string, string | undefined>>): string[] =>
  [env.RUNYARD_BLOBS, env.RUNYARD_BLOBS_FROM].some((place) => place?.startsWith('s3:'))
    ? Object.keys(env).filter((name) => name.startsWith('AWS_'))
    : [];

/**
 * Matches the standard variables of OpenTelemetry. Only the service gets these variables, because they may contain a credential for the
 * collector.
 */
const ofTelemetry = /^OTEL_[A-Z_]+$/;

/**
 * Returns the environment of a child program: the settings that the settings table assigns to this program, and the variables that
 * every program needs. So the worker gets no key of a model provider and no database address, and no program gets other variables of
 * the user's shell.
 */
export function childEnvironment(
  program: 'service' | 'worker',
  env: Readonly<Record<string, string | undefined>>,
  overrides: Readonly<Partial<Record<SettingName, string>>>,
): Record<string, string> {
  const names: string[] = [...common];
  if (program === 'service')
    names.push(...forBucket(env), ...Object.keys(env).filter((name) => ofTelemetry.test(name)));
  for (const [name, setting] of Object.entries(settingsTable)) {
    if ((setting.usedBy as readonly string[]).includes(program))
      names.push(
        name,
        ...('secret' in setting && !(overrides[name as SettingName] ?? env[name]) ? [fileVariable(name)] : []),
      );
  }
  const result: Record<string, string> = {};
  for (const name of names) {
    const value = overrides[name as SettingName] ?? env[name];
    if (value) result[name] = value;
  }
  return result;
}
