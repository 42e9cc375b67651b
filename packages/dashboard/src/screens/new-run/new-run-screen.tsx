import { approvalPolicies } from '@runyard/contract/wire/choices';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { type FormEvent, type KeyboardEvent, useRef, useState } from 'react';
import { failureOf } from '../../api/problem.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { CommandBlock } from '../../parts/copy.tsx';
import { Field } from '../../parts/field.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Problem } from '../../parts/problem.tsx';
import { asCommand, asCurl, type Draft, emptyDraft, requestOf } from './request.ts';

const route = getRouteApi('/shell/runs/new');

/** Starts a run: what will run, where, and what it may cost. */
export function NewRunScreen() {
  const client = useClient();
  const { team } = useSession();
  const may = useMay('member');
  const navigate = useNavigate();
  const prompt = oneOf(route.useSearch({ select: (search) => search.prompt })) ?? '';
  const [draft, setDraft] = useState<Draft>({ ...emptyDraft, prompt });
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const [form, setForm] = useState<'curl' | 'command'>('curl');
  // Stays until an answer has come, so that a repetition of a lost request starts one run.
  const key = useRef<string | undefined>(undefined);
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
    key.current = undefined;
    setDraft((before) => ({ ...before, [name]: value }));
  };
  const start = async (event?: FormEvent) => {
    event?.preventDefault();
    if (isBusy || draft.prompt.trim() === '') return;
    setBusy(true);
    setError(undefined);
    key.current ??= crypto.randomUUID();
    try {
      const created = await client.createRun({
        body: requestOf(draft),
        headers: { 'idempotency-key': key.current, 'x-oz-api-source': 'WEB_APP' },
      });
      await navigate({ to: '/runs/$runId', params: { runId: created.run_id } });
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) void start();
  };
  const faults = error === undefined ? new Map() : failureOf(error).members;
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
      <form className="wide" onSubmit={(event) => void start(event)} onKeyDown={onKeyDown}>
        <Field label="Prompt" fault={faults.get('prompt')}>
          {(id) => (
            <textarea
              id={id}
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
            fault={faults.get('config.model_id')}
            hint={
              model?.cost
                ? `$${model.cost.input_usd_per_mtok} read, $${model.cost.output_usd_per_mtok} written, for a million tokens`
                : model?.description?.split('. ')[0]
            }
          >
            {(id) => (
              <select id={id} className="in" value={draft.model} onChange={({ target }) => set('model')(target.value)}>
                <option value="">{`the default: ${models.data?.default_model_id ?? '…'}`}</option>
                {(models.data?.models ?? []).map((each) => (
                  <option key={each.id} value={each.id} disabled={each.disable_reason !== undefined}>
                    {each.display_name}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="Environment" fault={faults.get('config.environment_id')}>
            {(id) => (
              <select
                id={id}
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
          <Field label="Acts as" fault={faults.get('agent_identity_uid')}>
            {(id) => (
              <select
                id={id}
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
          <Field
            label="Approvals"
            fault={faults.get('config.approval_policy')}
            hint="ask: it waits before each command and change"
          >
            {(id) => (
              <select
                id={id}
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
          <Field label="Mode" fault={faults.get('mode')}>
            {(id) => (
              <select id={id} className="in" value={draft.mode} onChange={({ target }) => set('mode')(target.value)}>
                <option value="">normal</option>
                <option value="plan">plan: changes nothing, answers with a plan</option>
                <option value="orchestrate">orchestrate: may start child runs</option>
              </select>
            )}
          </Field>
          <Field label="Harness" fault={faults.get('config.harness.type')}>
            {(id) => (
              <input
                id={id}
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
          {['oz', 'claude', 'codex', 'gemini', 'opencode', 'acp', 'command'].map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <div className="three">
          <Field label="At most, US dollars" fault={faults.get('config.max_cost_usd')}>
            {(id) => <Amount id={id} step="0.01" value={draft.cost} change={set('cost')} />}
          </Field>
          <Field label="At most, minutes" fault={faults.get('config.max_duration_minutes')}>
            {(id) => <Amount id={id} step="1" value={draft.minutes} change={set('minutes')} />}
          </Field>
          <Field label="At most, turns" fault={faults.get('config.max_turns')}>
            {(id) => <Amount id={id} step="1" value={draft.turns} change={set('turns')} />}
          </Field>
        </div>
        <Field label="Title" fault={faults.get('title')} hint="Absent: the first line of the prompt">
          {(id) => (
            <input
              id={id}
              className="in"
              maxLength={500}
              value={draft.title}
              onChange={({ target }) => set('title')(target.value)}
            />
          )}
        </Field>
        <Problem error={error} onRetry={() => void start()} />
        <div className="row">
          <button type="submit" className="btn pri" disabled={!may || isBusy || draft.prompt.trim() === ''}>
            <Icon name="play" small />
            Start run <kbd>⌘↵</kbd>
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
              aria-pressed={form === 'curl'}
              onClick={() => setForm('curl')}
            >
              As curl
            </button>
            <button
              type="button"
              className="btn ghost sm"
              aria-pressed={form === 'command'}
              onClick={() => setForm('command')}
            >
              As command
            </button>
          </div>
          <CommandBlock command={form === 'curl' ? asCurl(draft, location.origin) : asCommand(draft)} />
        </section>
      </form>
    </Page>
  );
}

function Amount({
  id,
  step,
  value,
  change,
}: {
  id: string;
  step: string;
  value: string;
  change: (value: string) => void;
}) {
  return (
    <input
      id={id}
      type="number"
      className="in"
      min="0"
      step={step}
      placeholder="no limit of its own"
      value={value}
      onChange={({ target }) => change(target.value)}
    />
  );
}
