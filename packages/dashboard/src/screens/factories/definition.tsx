import type { FactoryDefinitionItem } from '@runyard/contract/factories/factory-definitions';
import { visibleText } from '@runyard/contract/wire/visible';
import { lazy, Suspense, useState } from 'react';
import { statusOf } from '../../api/problem.ts';
import { useRead } from '../../api/read.ts';
import { Content, P, Row, Stack, Text } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { CommandBlock } from '../../parts/copy.tsx';
import { exactText } from '../../parts/format.ts';
import { nameOf } from '../../parts/person.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Changes, Notices } from './plan.tsx';

const DefinitionEditor = lazy(async () => ({
  default: (await import('./definition-editor.tsx')).DefinitionEditor,
}));

/** Reads the definition that was applied last. A factory without one gives the status 404. */
export function useFactoryDefinition(factoryUid: string) {
  return useRead(
    ['factory', factoryUid, 'definition'],
    (client) => client.getFactoryDefinition({ params: { factoryUid } }),
    { retry: false },
  );
}

/** Shows the definition of the factory, and lets a person plan and apply another definition. */
export function Definition({ factoryUid, name }: { factoryUid: string; name: string }) {
  const [isEditing, setEditing] = useState(false);
  const { data, error, isPending } = useFactoryDefinition(factoryUid);
  const isNone = statusOf(error) === 404;
  return (
    <Content>
      <P tone="muted">
        The factory as files. Keep them in a repository, and apply them with{' '}
        <code>bin/runyard factory apply FOLDER</code>, let the factory follow the repository, or paste them here.
      </P>
      {!isNone && <Problem error={error} />}
      {!isPending && (
        <Row>
          <Button aria-expanded={isEditing} onClick={() => setEditing(!isEditing)}>
            {isEditing ? 'Back to the definition' : isNone ? 'Paste a definition' : 'Change the definition'}
          </Button>
        </Row>
      )}
      <Suspense>
        {isEditing && (
          <DefinitionEditor key={data?.version ?? 0} factoryUid={factoryUid} name={name} stored={data?.files ?? []} />
        )}
      </Suspense>
      {isNone && !isEditing && <P tone="dim">No definition was applied to this factory.</P>}
      {data && !isEditing && <Stored definition={data} />}
    </Content>
  );
}

/** Shows the definition that was applied last, and the changes that were made since then without files. */
function Stored({
  definition: { version, applied_at: at, applied_by: by, commit, drift, notices, files },
}: {
  definition: FactoryDefinitionItem;
}) {
  const origin = commit === undefined ? '' : ` from commit ${commit.slice(0, 8)}`;
  return (
    <>
      <p>{`Version ${version}, applied${origin} on ${exactText(Date.parse(at))}${by ? ` by ${nameOf(by)}` : ''}.`}</p>
      {drift.length > 0 && (
        <Stack as="section" gap={2} aria-label="Changed without files">
          <h2>Changed without files</h2>
          <P tone="muted">The next apply makes these changes, so that the factory is as the files define it.</P>
          <Changes changes={drift} />
        </Stack>
      )}
      <Notices notices={notices} />
      <Stack as="section" gap={2}>
        <h2>Files</h2>
        {files.map(({ path, content }) => (
          <details key={path}>
            <Text as="summary" mono>
              {visibleText(path)}
            </Text>
            <CommandBlock command={content} what={`Copy ${path}`} />
          </details>
        ))}
      </Stack>
    </>
  );
}
