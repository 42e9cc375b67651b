import { harnessTypes } from '@runyard/contract/agent/harness-presets/presets';
import { approvalPolicies } from '@runyard/contract/wire/choices';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { type KeyboardEvent, useId, useState } from 'react';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { CommandBlock } from '../../parts/copy.tsx';
import { type Control, Field, Form, type OnceHeaders } from '../../parts/form.tsx';
import { Icon } from '../../parts/icon.tsx';
import { keyText } from '../../parts/keys.ts';
import { asCommand, asCurl, type Draft, emptyDraft, requestOf } from './request.ts';

const route = getRouteApi('/shell/runs/new');

/**
 * The form that starts a run. A person chooses the configuration of the run, its environment and its maximum cost.
 */
export function NewRunScreen() {
  const client = useClient();
  const { team } = useSession();
  const may = useMay('member');
  const navigate = useNavigate();
  const prompt = oneOf(route.useSearch({ select: (search) => search.prompt })) ?? '';
  const [draft, setDraft] = useState<Draft>({ ...emptyDraft, prompt });
  const [isBusy, setBusy] = useState(false);
  const [wording, setWording] = useState<'curl' | 'command'>('curl');
  const form = useId();
  const models = useQuery({
    queryKey: ['models', team.uid],
    queryFn: async () => await client.listModels({}),
  });
  const environments = useQuery({
    queryKey: ['environments', team.uid],
    queryFn: async () => (await client.listEnvironments({})).environments,
  });
  const identities = useQuery({
    queryKey: ['identities', team.uid],
    queryFn: async () => (await client.listAgentIdentities({})).agents,
  });
  const set = (name: keyof Draft) => (value: string) => {
    setDraft((before) => ({ ...before, [name]: value }));
  };
  const start = async (_: FormData, headers: OnceHeaders) => {
    const created = await client.createRun({
      body: requestOf(draft),
      headers: { ...headers, 'x-oz-api-source': 'WEB_APP' },
    });
    await navigate({ to: '/runs/$runId', params: { runId: created.run_id } });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || !(event.metaKey || event.ctrlKey)) return;
    event.preventDefault();
    (event.target as HTMLElement).closest('form')?.requestSubmit();
  };
  const model = models.data?.models.find(({ id }) => id === (draft.model || models.data?.default_model_id));
  return (
    <Page
      title="New run"
      crumbs={
        <Link to="/runs" className="hide-m">
          Runs
        </Link>
      }
    >
      <Form id={form} className="wide" send={start} onBusy={setBusy} onKeyDown={onKeyDown}>
        <Field label="Prompt" path="prompt">
          {(control) => (
            <textarea
              {...control}
              className="in"
              rows={10}
              required
              placeholder="What should the agent do?"
              value={draft.prompt}
              onChange={({ target }) => set('prompt')(target.value)}
            />
          )}
        </Field>
        <div className="three">
          <Field
            label="Model"
            path="config.model_id"
            hint={
              model?.cost
                ? `$${model.cost.input_usd_per_mtok} read, $${model.cost.output_usd_per_mtok} written, for a million tokens`
                : model?.description?.split('. ')[0]
            }
          >
            {(control) => (
              <select
                {...control}
                className="in"
                value={draft.model}
                onChange={({ target }) => set('model')(target.value)}
              >
                <option value="">{`the default: ${models.data?.default_model_id ?? '…'}`}</option>
                {(models.data?.models ?? []).map((each) => (
                  <option key={each.id} value={each.id} disabled={each.disable_reason !== undefined}>
                    {each.display_name}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="Environment" path="config.environment_id">
            {(control) => (
              <select
                {...control}
                className="in"
                value={draft.environment}
                onChange={({ target }) => set('environment')(target.value)}
              >
                <option value="">none: an empty workspace</option>
                {(environments.data ?? []).map(({ uid, config }) => (
                  <option key={uid} value={uid}>
                    {visibleText(config.name ?? uid)}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="Acts as" path="agent_identity_uid">
            {(control) => (
              <select
                {...control}
                className="in"
                value={draft.identity}
                onChange={({ target }) => set('identity')(target.value)}
              >
                <option value="">you</option>
                {(identities.data ?? []).map(({ uid, name }) => (
                  <option key={uid} value={uid}>
                    {visibleText(name)}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </div>
        <div className="three">
          <Field label="Approvals" path="config.approval_policy" hint="ask: it waits before each command and change">
            {(control) => (
              <select
                {...control}
                className="in"
                value={draft.approval}
                onChange={({ target }) => set('approval')(target.value)}
              >
                <option value="">auto-approve, the default</option>
                {approvalPolicies
                  .filter((policy) => policy !== 'auto-approve')
                  .map((policy) => (
                    <option key={policy}>{policy}</option>
                  ))}
              </select>
            )}
          </Field>
          <Field label="Mode" path="mode">
            {(control) => (
              <select
                {...control}
                className="in"
                value={draft.mode}
                onChange={({ target }) => set('mode')(target.value)}
              >
                <option value="">normal</option>
                <option value="plan">plan: changes nothing, answers with a plan</option>
                <option value="orchestrate">orchestrate: may start child runs</option>
              </select>
            )}
          </Field>
          <Field label="Harness" path="config.harness.type">
            {(control) => (
              <input
                {...control}
                className="in"
                placeholder="oz"
                list="harnesses"
                value={draft.harness}
                onChange={({ target }) => set('harness')(target.value)}
              />
            )}
          </Field>
        </div>
        <datalist id="harnesses">
          {harnessTypes.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <div className="three">
          <Field label="At most, US dollars" path="config.max_cost_usd">
            {(control) => <Amount control={control} step="0.01" value={draft.cost} change={set('cost')} />}
          </Field>
          <Field label="At most, minutes" path="config.max_duration_minutes">
            {(control) => <Amount control={control} step="1" value={draft.minutes} change={set('minutes')} />}
          </Field>
          <Field label="At most, turns" path="config.max_turns">
            {(control) => <Amount control={control} step="1" value={draft.turns} change={set('turns')} />}
          </Field>
        </div>
        <Field label="Title" path="title" hint="Absent: the first line of the prompt">
          {(control) => (
            <input
              {...control}
              className="in"
              maxLength={500}
              value={draft.title}
              onChange={({ target }) => set('title')(target.value)}
            />
          )}
        </Field>
        <div className="row">
          <button type="submit" className="btn pri" disabled={!may || isBusy || draft.prompt.trim() === ''}>
            <Icon name="play" small />
            Start run <kbd>{keyText('mod+Enter')}</kbd>
          </button>
          <Link className="btn" to="/schedules" search={{ new: 'true', prompt: draft.prompt }}>
            As schedule
          </Link>
          {!may && <span className="hint">Your role is viewer: a member can start runs.</span>}
        </div>
        <section className="stack s2" aria-label="The same request elsewhere">
          <div className="seg sm start">
            <button
              type="button"
              className="btn ghost sm"
              aria-pressed={wording === 'curl'}
              onClick={() => setWording('curl')}
            >
              As curl
            </button>
            <button
              type="button"
              className="btn ghost sm"
              aria-pressed={wording === 'command'}
              onClick={() => setWording('command')}
            >
              As command
            </button>
          </div>
          <CommandBlock command={wording === 'curl' ? asCurl(draft, location.origin) : asCommand(draft)} />
        </section>
      </Form>
    </Page>
  );
}

function Amount({
  control,
  step,
  value,
  change,
}: {
  control: Control;
  step: string;
  value: string;
  change: (value: string) => void;
}) {
  return (
    <input
      {...control}
      type="number"
      className="in"
      min="0"
      step={step}
      placeholder="no separate limit"
      value={value}
      onChange={({ target }) => change(target.value)}
    />
  );
}
