import { type FactoryFileName, factoryFileSchemas } from '@runyard/contract/factories/files/json-schemas';
import { githubEvents } from '@runyard/contract/webhooks/github-events';
import { example } from './factory-files-example.ts';

type Schema = Readonly<Record<string, unknown>>;

const files: readonly (readonly [FactoryFileName, string, string])[] = [
  ['factory', '`factory.yaml`', 'The factory itself.'],
  ['agent', '`agents/<name>/agent.md`', 'Front matter; the text after it is the prompt of the agent.'],
  ['automation', '`automations/<name>/automation.md`', 'Front matter; the text after it is the prompt of the runs.'],
  ['webhook', '`webhooks/<name>.yaml`', 'A webhook keeps its UID and URL as long as it keeps its name.'],
  ['runner', '`runners/<name>.yaml`', 'The machine that runs are executed on.'],
  [
    'environment',
    '`environments/<name>.yaml`',
    'The content of a sandbox before the agent begins. The keys are those of `config` in `POST /agent/environments`.',
  ],
  ['variables', '`variables.yaml`', 'The values that differ between factories, such as staging and production.'],
];

/** Returns the text of `docs/factory-files.md`, which is made from the schemas of the files. */
export function renderFactoryFilesPage(): string {
  const schemas = factoryFileSchemas();
  const tables = files.map(([name, title, text]) => `## ${title}\n\n${text}\n\n${keyTable(schemas[name])}`);
  return `<!-- Written by bin/generate from packages/contract/src/factories/files. -->

# Definition files of a factory

A factory can be defined by files in a folder. \`bin/runyard factory validate FOLDER\` checks them without a service, and prints each
fault as \`file:line:column: message\`. The name of a file or folder is the name of the agent, automation, webhook, runner, environment or skill.
Skills are folders with a \`SKILL.md\`: those in \`skills/\` are for every agent, those in \`agents/<name>/skills/\` for one. A run has
their files in its home folder, for its agent to use; it follows only a skill that the key \`skills\` names. Other files
beside \`factory.yaml\`, such as README.md, are ignored; unknown files in the folders of the definition are faults.

Keys are case-sensitive, and an unknown key is a fault. Keys of the public service that this one does not have, such as \`integrations\`,
are kept and reported as not available. Files are UTF-8. The YAML is version 1.2, without anchors, aliases and tags.
Exactly one agent has \`agentType: FOREMAN\`. Execution keys (\`model\`, \`harness\`, \`runner\`, …) of an automation come before those of
its agent, and those before \`agentDefaults\`; a list or map replaces the inherited one. A webhook cannot be renamed.

\`bin/runyard factory apply FOLDER\` shows what would change in a factory, asks, and applies the files whole or not at all.
\`--dry-run\` only shows, and exits with 2 if something would change. An automation that cannot fire, such as one whose webhook is
disabled, is applied and named; with \`--strict\` the exit code is then 3. Webhooks and
automations that were made without files stay. A webhook takes the team secret \`secretName\` and follows its changes at once. A run
with a runner waits for a worker that runs containers (RUNYARD_SANDBOX=docker). A model that the service does not offer, macOS, and aarch64
without a \`workerHost\` are reported too. Runs with them are refused, and never get another model or machine.
\`bin/runyard factory export FOLDER --factory UID\` writes the files that were applied last. A file whose name another program may obey,
such as \`.envrc\` or \`HEAD\`, is not written into a folder; \`--json\` prints all files. \`GET /factory/{uid}/definition\` also
shows the drift: what was changed without files. The schemas of the files are at \`GET /api/v1/factory-files/schemas/v1alpha1\`, and that of
\`factory.yaml\` for editors at \`/api/v1/factory-files/schemas/v1alpha1/factory.schema.json\`.

\`bin/runyard factory source set UID OWNER/REPO\` lets a factory follow a branch of a git repository instead. The service looks at it
every few minutes, and at once when a webhook of the factory with \`signatureScheme: github\` takes a push. It reads all files of one
commit and applies them as the person who set the source; a commit with faults, or of a person who may not apply definitions any more,
changes nothing, and \`bin/runyard factory source show UID\` says why. Meanwhile an apply by hand is refused, except as a dry run. Symbolic
links, submodules and files in Git LFS are faults. A change without files stays until the definition changes, or until
\`bin/runyard factory source sync UID\`. \`bin/runyard factory source remove UID\` detaches the factory, which does not change.

## One definition for several factories

A definition names its own webhooks, runners and environments by their files, and environments of the team by their names. So it needs
no UIDs, and one apply is enough for an empty installation. Only the secrets come first, because files never contain their values. If the
team has no factory with the alias or name of the files, \`factory apply\` creates one.

Use variables for values that differ between factories. \`variables.yaml\` declares the variables. In YAML and front matter, write
\`\${{ variables.NAME }}\` in place of a whole value. A variable cannot be a part of a text, the prompt, a key, or the name of a secret, and its
value is not read as YAML. \`factory apply\` and \`factory source set\` take values with \`--var NAME=VALUE\`. The factory keeps these values for
later applies and syncs. All other variables have their defaults. Two factories with different values can follow the same branch.

With the example below in the folder \`payments\`, these commands make a factory for production and one for staging:

\`\`\`sh
printf %s "$CI_WEBHOOK_SECRET" | bin/runyard secrets set CI_WEBHOOK_SECRET --scope team
bin/runyard factory apply payments --var model=runbook --yes
bin/runyard factory apply payments --var name=payments-staging --var model=runbook --yes
\`\`\`

A change goes to staging first. \`versions\` lists the versions of a definition, \`diff\` compares two of them, and \`rollback\` applies
the files and variables of an earlier version again. The person who rolls back becomes the author of the texts that change, so people who
accepted the earlier version are asked again.

\`\`\`sh
bin/runyard factory apply payments --var name=payments-staging --yes
bin/runyard factory apply payments --yes
bin/runyard factory versions payments
bin/runyard factory diff payments 2
bin/runyard factory rollback payments 1 --yes
\`\`\`

A program that checks a change before it is merged needs an agent key that is limited to plans: \`bin/runyard keys create ci --kind agent --limited-to
definition_plans\`. With this key, \`factory apply FOLDER --factory UID --dry-run\` shows the plan. The plan shows nothing about objects that the
key may not see, and does not check secrets.

[limits.md](limits.md) has the limits, and [decisions/definition-files.md](decisions/definition-files.md) the reasons.

${tables.join('\n')}
## Triggers

| provider | event | keys |
|---|---|---|
| \`webhook\` | \`received\` | \`filter.webhooks\`: names of webhooks of the definition, such as \`ci\` for \`webhooks/ci.yaml\`. \`filter.webhook_ids\`: UIDs of webhooks of the factory (\`bin/runyard webhooks list\`). \`filter.payload\`: a payload filter |
| \`schedule\` | \`cron_fired\` | \`schedule.cron\`: ${scheduleText} |
| \`factory\` | \`work_item_stage_changed\` | \`filter.stages\`: stages that a task of the factory has moved into, as a list or as \`in\` and \`not_in\`. Its run gets the move as event-payload.json |
| \`github\` | see below | \`filter\`: see below |
| others | | kept, reported as not available, and never fire |

A GitHub trigger is fed by webhooks with \`signatureScheme: github\`. Each member of its filter is a list of values, of which one must
match, or an object with the lists \`in\` and \`not_in\`. All members must match; an empty one matches everything. Reviews, check suites and
workflow runs also accept \`own_pull_request: {max_starts}\`: only pull requests of runs of the team, and only so many runs for each
([github.md](github.md#failed-checks-and-reviews-start-work-again)).

| event | members of the filter |
|---|---|
${githubRows()}

## Payload filters

A payload filter mirrors the body of a delivery. Every key must match.

| filter | matches |
|---|---|
| \`{key: [v1, v2]}\`, \`{key: {in: [v1, v2]}}\` | the field is there and equals one of the values, in JSON type too: 1 is not "1" |
| \`{key: {not_in: [v1]}}\` | the field equals none of the values, or is missing |
| \`{key: {exists: true}}\` | the field is there, even if it is null; with \`false\`: it is missing |
| \`{key: {nested: [v1]}}\` | the object in the field matches the inner filter. Without an object, only \`not_in\` and \`exists: false\` pass |

Values are strings, numbers, booleans and null. Of a field with an array, \`in\` needs one element, \`not_in\` allows none, and an inner
filter needs one element that matches all of it. A body that is no object matches only the empty filter. A field that is itself named
\`in\`, \`not_in\` or \`exists\` cannot be reached.

## Example

${example.map(({ path, content }) => `\`${path}\`:\n\n\`\`\`${path.endsWith('.md') ? 'markdown' : 'yaml'}\n${content}\`\`\``).join('\n\n')}
`;
}

const scheduleText =
  'five fields, `@daily` and the like, or `@every 90m`. `schedule.timezone`: time zone of these times, default UTC. `schedule.name`: its identity. Or, instead of `schedule`, `filter.schedule_ids`: ids of schedules of the team (`bin/runyard schedules list`)';

function githubRows(): string {
  const byMembers = Map.groupBy(Object.entries(githubEvents), ([, members]) => members.map(code).join(', '));
  return [...byMembers]
    .map(([members, events]) => `| ${events.map(([event]) => code(event)).join(', ')} | ${members} |`)
    .join('\n');
}

const code = (text: string): string => `\`${text}\``;

function keyTable(schema: Schema): string {
  return `| key | needed | meaning |\n|---|---|---|\n${rowsOf(schema, '', (schema.$defs ?? {}) as Readonly<Record<string, Schema>>).join('\n')}\n`;
}

/**
 * Returns the table rows for the keys of a schema. The row of a key is followed by the rows of the keys inside it. The keys of triggers
 * are omitted, because triggers have their own section.
 */
function rowsOf(schema: Schema, parent: string, named: Readonly<Record<string, Schema>>): string[] {
  const properties = (schema.properties ?? {}) as Readonly<Record<string, Schema>>;
  const required = (schema.required ?? []) as readonly string[];
  return Object.entries(properties).flatMap(([key, property]) => {
    const path = parent === '' ? key : `${parent}.${key}`;
    const reference = String(property.$ref ?? '').replace('#/$defs/', '');
    const meaning = String(property.description ?? named[reference]?.description ?? '').replaceAll('|', '\\|');
    const row = `| ${code(path)} | ${required.includes(key) ? 'yes' : ''} | ${meaning}${choicesOf(property)} |`;
    return key === 'triggers' ? [row] : [row, ...rowsOf(insideOf(property), path, named)];
  });
}

/**
 * Returns the schema whose keys are shown below a key. This is the schema of the key, the schema of its list elements or, if the key
 * may be null, the other alternative.
 */
function insideOf(schema: Schema): Schema {
  const alternatives = (schema.anyOf ?? []) as readonly Schema[];
  const inner = alternatives.find((each) => each.properties !== undefined) ?? schema;
  return (inner.items as Schema | undefined) ?? inner;
}

function choicesOf(schema: Schema): string {
  if (schema.const !== undefined) return `: ${code(String(schema.const))}`;
  const { enum: choices } = schema;
  return Array.isArray(choices) ? `. One of ${choices.map((each) => code(String(each))).join(', ')}` : '';
}
