import type { ApplyDefinitionResponse } from '@runyard/contract/factories/factory-definitions';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useClient, useMay } from '../../api/session.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Hint, Row, Stack } from '../../parts/blocks.tsx';
import { Button, Input } from '../../parts/controls.tsx';
import { Problem } from '../../parts/problem.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { showToast } from '../../parts/toast.tsx';
import styles from './factories.module.css';
import { Plan } from './plan.tsx';

interface DefinitionFile {
  readonly path: string;
  readonly content: string;
}

/** Returns the smallest possible definition. The editor shows it for a factory without a definition. */
const smallest = (name: string): readonly DefinitionFile[] => [
  {
    path: 'factory.yaml',
    content: `schemaVersion: v1alpha1\nname: ${JSON.stringify(name)}\nrepositories: []\nagentDefaults:\n  model: runbook\n`,
  },
  { path: 'agents/foreman/agent.md', content: '---\nagentType: FOREMAN\n---\n\nDivide the work.\n' },
];

/** A plan, and the definition files for which the service has made this plan. */
interface Planned {
  readonly files: readonly DefinitionFile[];
  readonly plan: ApplyDefinitionResponse;
}

/** Lets a person edit the files of a definition. Shows the changes that the files would make, and applies these changes on request. */
export function DefinitionEditor({
  factoryUid,
  name,
  stored,
}: {
  factoryUid: string;
  name: string;
  stored: readonly DefinitionFile[];
}) {
  const client = useClient();
  const may = useMay('member');
  const queries = useQueryClient();
  const [files, setFiles] = useState<readonly DefinitionFile[]>(stored.length > 0 ? stored : smallest(name));
  const [planned, setPlanned] = useState<Planned | undefined>();
  const { error, attempt, isBusy } = useAttempts();
  const set = (index: number, change: Partial<DefinitionFile>) => {
    setFiles(files.map((file, at) => (at === index ? { ...file, ...change } : file)));
    setPlanned(undefined);
  };
  const send = async (work: () => Promise<void>) => {
    if (!(await attempt(work))) setPlanned(undefined);
  };
  const params = { factoryUid };
  const plan = () =>
    send(async () => {
      const answer = await client.applyFactoryDefinition({ params, body: { files: [...files], dry_run: true } });
      setPlanned({ files, plan: answer });
    });
  const apply = ({ files: shown, plan: { version } }: Planned) =>
    send(async () => {
      const body = { files: [...shown], expected_version: version };
      const applied = await client.applyFactoryDefinition({ params, body });
      setPlanned(undefined);
      showToast(`Applied version ${applied.version}`);
      await queries.invalidateQueries({ queryKey: ['factory', factoryUid] });
    });
  return (
    <Stack>
      {files.map((file, index) => (
        <Stack key={index} as="fieldset" gap={2} className={styles.plainSet}>
          <Row>
            <Input
              mono
              grow
              aria-label={`Path of file ${index + 1}`}
              value={file.path}
              spellCheck={false}
              onChange={({ target }) => set(index, { path: target.value })}
            />
            <Button
              small
              disabled={files.length === 1}
              onClick={() => {
                setFiles(files.filter((_, at) => at !== index));
                setPlanned(undefined);
              }}
            >
              Remove
            </Button>
          </Row>
          <Input
            as="textarea"
            mono
            aria-label={`Content of ${file.path}`}
            rows={Math.min(18, Math.max(6, file.content.split('\n').length + 1))}
            spellCheck={false}
            value={file.content}
            onChange={({ target }) => set(index, { content: target.value })}
          />
        </Stack>
      ))}
      <Row wrap>
        <Button
          onClick={() => {
            setFiles([...files, { path: `automations/new-${files.length}.yaml`, content: '' }]);
            setPlanned(undefined);
          }}
        >
          Add a file
        </Button>
        <RoleButton needs="member" disabled={isBusy} run={() => void plan()}>
          Plan
        </RoleButton>
        {planned && (
          <RoleButton needs="member" kind="primary" disabled={isBusy} run={() => void apply(planned)}>
            {`Apply ${planned.plan.changes.length === 0 ? 'again' : `${planned.plan.changes.length} changes`}`}
          </RoleButton>
        )}
        {!may && <Hint>Your role is viewer: a member can apply a definition.</Hint>}
      </Row>
      <Problem error={error} />
      {planned && <Plan plan={planned.plan} />}
    </Stack>
  );
}
