import { harnessTypes } from '@runyard/contract/agent/harness-presets/presets';
import { approvalPolicies } from '@runyard/contract/wire/choices';
import { visibleText } from '@runyard/contract/wire/visible';
import { type ChangeEvent, type ReactNode, useEffect, useState } from 'react';
import { flushSync } from 'react-dom';
import { useEnvironments, useIdentities } from '../../api/lists.ts';
import { useTeamRead } from '../../api/read.ts';
import { Row, Stack, Text, Three } from '../../parts/blocks.tsx';
import { Check } from '../../parts/controls.tsx';
import { Field, SelectField, TextField, useHasFaults } from '../../parts/form.tsx';
import { Amount } from './fields.tsx';
import { ModelPicker } from './model-picker.tsx';
import styles from './new-run.module.css';
import { RepositoryField } from './repository-field.tsx';
import type { Draft } from './request.ts';

type Options = readonly (readonly [value: string, words: string])[];

/** Returns the options, with the present value if it is not among them. */
const withValue = (options: Options, value: string): Options =>
  options.some(([each]) => each === value) ? options : [...options, [value, value]];

/** Members of the draft that one text sets. */
type TextMember = Exclude<keyof Draft, 'isFresh' | 'servers'>;

/** Shows the fields of a run below its prompt: harness, model and environment. Further fields are behind “More”. */
export function Choices({
  draft,
  change,
  isRerun,
  title,
}: {
  draft: Draft;
  change: (members: Partial<Draft>) => void;
  isRerun: boolean;
  /** The field for the title. */
  title: ReactNode;
}) {
  const environments = useEnvironments();
  const set = (name: TextMember) => (value: string) => change({ [name]: value });
  const isGone = !isRerun && environments.data?.every(({ uid }) => uid !== draft.environment) === true;
  // The choice of an earlier run may be an environment that was deleted since.
  // biome-ignore lint/correctness/useExhaustiveDependencies: `change` is another function in each rendering
  useEffect(() => {
    if (isGone && draft.environment !== '') change({ environment: '' });
  }, [isGone, draft.environment]);
  const { model, harness } = draft;
  const [repository, setRepository] = useState('');
  return (
    <>
      <Three>
        <ModelPicker worker={{ model, harness }} set={change} />
        <SelectField
          label="Environment"
          path="config.environment_id"
          value={draft.environment}
          options={withValue(
            [
              ['', 'none: an empty workspace'],
              ...(environments.data ?? []).map(({ uid, config }) => [uid, config.name ?? uid] as const),
            ],
            draft.environment,
          )}
          onChange={({ target }) => {
            setRepository('');
            set('environment')(target.value);
          }}
        />
        {!isRerun && <SkillField value={draft.skill} set={set('skill')} />}
      </Three>
      <RepositoryField
        text={repository}
        setText={setRepository}
        environment={draft.environment}
        setEnvironment={set('environment')}
      />
      <More draft={draft} change={change} set={set} isRerun={isRerun} title={title} />
    </>
  );
}

/** A field for a skill, with the skills of the team's repositories as suggestions. */
function SkillField({ value, set }: { value: string; set: (value: string) => void }) {
  const [isUsed, setUsed] = useState(false);
  // The service reads repositories for this list, so the page asks for it only when it is needed.
  const skills = useTeamRead(
    ['ids of skills'],
    async (client) => (await client.listAgents({})).agents.flatMap(({ variants }) => variants.map(({ id }) => id)),
    { enabled: isUsed },
  );
  return (
    <>
      <TextField
        label="Skill"
        path="skill"
        placeholder="none, or owner/repo:name"
        list="skills"
        value={value}
        onFocus={() => setUsed(true)}
        onChange={({ target }) => set(target.value)}
      />
      <datalist id="skills">
        {(skills.data ?? []).map((id) => (
          <option key={id} value={id} />
        ))}
      </datalist>
    </>
  );
}

/** Returns whether a field behind “More” has a value, so that the person should see it. */
const usesMore = ({ approval, mode, identity, title, cost, minutes, turns, servers }: Draft): boolean =>
  servers.length > 0 || [approval, mode, identity, title, cost, minutes, turns].some((value) => value !== '');

/** The fields that most runs do not need. They are open if one of them has a value or a fault. */
function More({
  draft,
  change,
  set,
  isRerun,
  title,
}: {
  draft: Draft;
  change: (members: Partial<Draft>) => void;
  set: (name: TextMember) => (value: string) => void;
  isRerun: boolean;
  title: ReactNode;
}) {
  const [isOpen, setOpen] = useState(() => usesMore(draft));
  const hasFaults = useHasFaults();
  const identities = useIdentities();
  /** Returns the members of a field with the options of one member of the draft. */
  const choice = (name: 'identity' | 'approval' | 'mode', options: Options) => ({
    value: draft[name],
    options: withValue(options, draft[name]),
    onChange: ({ target }: ChangeEvent<HTMLSelectElement>) => set(name)(target.value),
  });
  return (
    <Stack
      as="details"
      className={styles.more}
      open={isOpen || hasFaults}
      onToggle={({ currentTarget }) => setOpen((currentTarget as HTMLDetailsElement).open)}
      // The browser shows what is wrong with a field only if the field is visible at the end of this event.
      onInvalidCapture={() => flushSync(() => setOpen(true))}
    >
      <Text as="summary" tone="muted">
        More: approvals, limits{isRerun ? '' : ', agent, MCP servers'}, title
      </Text>
      <Stack>
        <Three>
          <SelectField
            label="Approvals"
            path="config.approval_policy"
            hint="ask: it waits before each command and change"
            {...choice('approval', [
              ['', 'auto-approve, the default'],
              ...approvalPolicies.filter((each) => each !== 'auto-approve').map((each) => [each, each] as const),
            ])}
          />
          {!isRerun && (
            <SelectField
              label="Mode"
              path="mode"
              {...choice('mode', [
                ['', 'normal'],
                ['plan', 'plan: changes nothing, answers with a plan'],
                ['orchestrate', 'orchestrate: may start child runs'],
              ])}
            />
          )}
          {!isRerun && (
            <SelectField
              label="Acts as"
              path="agent_identity_uid"
              {...choice('identity', [
                ['', 'you'],
                ...(identities.data ?? []).map(({ uid, name }) => [uid, name] as const),
              ])}
            />
          )}
        </Three>
        <Three>
          <Field label="At most, US dollars" path="config.max_cost_usd">
            {(control) => <Amount control={control} step="0.01" value={draft.cost} change={set('cost')} />}
          </Field>
          <Field label="At most, minutes" path="config.max_duration_minutes">
            {(control) => <Amount control={control} step="1" value={draft.minutes} change={set('minutes')} />}
          </Field>
          <Field label="At most, turns" path="config.max_turns">
            {(control) => <Amount control={control} step="1" value={draft.turns} change={set('turns')} />}
          </Field>
        </Three>
        <Three>
          <TextField
            label="Harness"
            path="config.harness.type"
            placeholder="oz"
            list="harnesses"
            value={draft.harness}
            onChange={({ target }) => set('harness')(target.value)}
          />
        </Three>
        <datalist id="harnesses">
          {harnessTypes.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        {!isRerun && <Servers chosen={draft.servers} set={(servers) => change({ servers })} />}
        {title}
      </Stack>
    </Stack>
  );
}

/** Lets a person choose stored MCP servers of the team. */
function Servers({ chosen, set }: { chosen: Draft['servers']; set: (servers: Draft['servers']) => void }) {
  const { data = [] } = useTeamRead(['mcp-servers'], async (client) => (await client.listMcpServers()).mcp_servers);
  if (data.length === 0) return null;
  return (
    <Stack as="fieldset" gap={1} className={styles.servers}>
      <Text as="legend">MCP servers</Text>
      <Row wrap>
        {data.map(({ id, name }) => (
          <Row as="label" key={id}>
            <Check
              type="checkbox"
              checked={chosen.some((each) => each.id === id)}
              onChange={({ target }) => {
                const others = chosen.filter((each) => each.id !== id);
                set(target.checked ? [...others, { id, name }] : others);
              }}
            />
            {visibleText(name)}
          </Row>
        ))}
      </Row>
    </Stack>
  );
}
