/** Says in terms of commands what the service says in terms of its API. */

/** Requests that the service recommends, and the commands that do the same. */
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

/** Commands that list the things of which the service says that there is no such one. */
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

/** Returns the text of the service with commands in the place of requests. */
export function inCommandWords(text: string): string {
  const told = commands.reduce((before, [request, command]) => before.replaceAll(request, command), text);
  const [, thing = ''] = /^There is no such ([\w ]+), or it belongs to another team\.$/.exec(told) ?? [];
  const list = Object.hasOwn(lists, thing) ? lists[thing] : undefined;
  return list === undefined ? told : `${told} See: bin/runyard ${list}`;
}
