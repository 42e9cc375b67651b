/** Replaces API advice in service errors with the matching commands. */

/** API requests that messages of the service recommend, each with the command that does the same. */
const commands: readonly (readonly [request: RegExp, command: string])[] = [
  [/GET \/agent\/models\b/g, 'bin/runyard models'],
  [/GET \/agent\/environments\b/g, 'bin/runyard environments'],
  [/GET \/agent\/identities\b/g, 'bin/runyard identities'],
  [/GET \/agent\/mcp-servers\b/g, 'bin/runyard mcp'],
  [/GET \/agent(?![\w/-])/g, 'bin/runyard agents'],
  [/GET \/secrets\b/g, 'bin/runyard secrets'],
  [/PUT \/secrets\/([\w{}]+) and the scope team\b/g, 'bin/runyard secrets set $1 --scope team'],
  [/PUT \/secrets\/([\w{}]+)/g, 'bin/runyard secrets set $1'],
  [/GET \/factory\/[\w{}]+\/webhooks\b/g, 'bin/runyard webhooks'],
  [/DELETE \/factory\/(\w+)\/source\b/g, 'bin/runyard factory source remove $1'],
  [/POST \/code-hosts\b/g, 'bin/runyard code-hosts add'],
  [/PATCH \/budget\b/g, 'bin/runyard budget set'],
  [/GET \/teams\b/g, 'bin/runyard teams'],
];

/** The commands that list all things of a kind. If an error reports that a thing does not exist, the message names the command for its kind. */
const lists: Readonly<Record<string, string>> = {
  run: 'runs',
  environment: 'environments',
  factory: 'factory list',
  webhook: 'webhooks',
  schedule: 'schedules',
  'MCP server': 'mcp',
  credential: 'code-hosts',
  secret: 'secrets',
  key: 'keys',
  'agent identity': 'identities',
  'person in the team': 'users',
};

/** Replaces API requests in a text of the service by commands. */
export function inCommandWords(text: string): string {
  const advice = commands.reduce((before, [request, command]) => before.replaceAll(request, command), text);
  const [, thing = ''] = /^There is no such ([\w ]+), or it belongs to another team\.$/.exec(advice) ?? [];
  const list = Object.hasOwn(lists, thing) ? lists[thing] : undefined;
  return list === undefined ? advice : `${advice} See: bin/runyard ${list}`;
}

/** Options of `run`, each with the member of the request that the option sets. */
const options: readonly (readonly [member: string, option: string])[] = [
  ['title', '--title'],
  ['mode', '--mode'],
  ['metadata', '--metadata'],
  ['attachments', '--attach'],
  ['config.mcp_servers', '--mcp'],
  ['config.name', '--name'],
  ['config.model_id', '--model'],
  ['config.environment_id', '--environment'],
  ['config.secrets', '--secret'],
  ['config.skill_spec', '--skill'],
  ['config.harness.command', '--harness-command'],
  ['config.harness', '--harness'],
  ['config.approval_policy', '--approval'],
  ['config.approval_rules', '--ask'],
  ['config.idle_timeout_minutes', '--idle'],
  ['config.max_cost_usd', '--max-cost'],
  ['config.max_turns', '--max-turns'],
  ['config.max_duration_minutes', '--max-minutes'],
  ['config.on_worker_loss', '--on-worker-loss'],
];

/** Replaces the names of members by options of `run`, in a text that lists the faults of a request. */
export function inOptionWords(text: string): string {
  return text.replace(/(^|: |\n *)([a-z_]+(?:\.[a-z_]+)*)((?:\[\d+\]|\.\w+)*)(?=: )/g, (all, before, path) => {
    const found = options.find(([member]) => path === member || path.startsWith(`${member}.`));
    return found ? `${before}${found[1]}` : all;
  });
}
