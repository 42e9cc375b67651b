/** Revisions that wait for the acceptance of the person. */

import type { WaitingContent } from '@runyard/contract/runs/acceptances';
import { visible, visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useTeamRead } from '../../api/read.ts';
import { useClient, useSession } from '../../api/session.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Badge, Card, CardBody, CardHead, Hint, P, Row, Stack, Text } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { Empty, SkeletonRows } from '../../parts/empty.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Cell, Table } from '../../parts/table.tsx';
import { Ago } from '../../parts/time.tsx';

/** Lists the revisions with their differences, and accepts them. */
export function Revisions() {
  const { data: waiting, error, refetch } = useWaitingContents();
  return (
    <Stack pad>
      <Problem error={error} onRetry={() => void refetch()} />
      {waiting === undefined && !error && <SkeletonRows count={4} />}
      {waiting?.length === 0 && (
        <Empty title="Nothing waits for your acceptance">
          Your runs execute environments, schedules and other contents that people of your team write. What others have
          written since you accepted it last is listed here.
        </Empty>
      )}
      {waiting?.map((content) => (
        <Revision key={`${content.kind}/${content.uid}`} content={content} />
      ))}
    </Stack>
  );
}

function useWaitingContents() {
  return useTeamRead(['acceptances'], async (client) => (await client.listAcceptances({})).waiting);
}

/** Returns the names of the authors whose texts wait. */
const authorsOf = ({ authors }: WaitingContent): string =>
  authors.map(({ display_name, uid }) => visibleText(display_name ?? uid ?? '')).join(', ') || 'an unknown author';

function Revision({ content }: { content: WaitingContent }) {
  const client = useClient();
  const queries = useQueryClient();
  const { team } = useSession();
  const { error, attempt, isBusy } = useAttempts();
  const accept = async () => {
    await attempt(async () => {
      const { kind, uid, revision } = content;
      await client.accept({ body: { kind, uid, revision } });
      await queries.invalidateQueries({ queryKey: ['acceptances', team.uid] });
      await queries.invalidateQueries({ queryKey: ['inbox', team.uid] });
    });
  };
  return (
    <Card as="article">
      <CardHead>
        <Icon name="lock" small />
        <Text medium cut>
          {visibleText(content.name ?? content.uid)}
        </Text>
        <Badge>{content.kind.replaceAll('_', ' ')}</Badge>
        <Hint right>
          {`revision ${content.revision} with texts of ${authorsOf(content)}, `}
          <Ago time={content.written_at} />
        </Hint>
      </CardHead>
      <CardBody stack gap={2}>
        <P tone="muted">
          {content.accepted_revision === undefined
            ? 'You have not accepted any revision of it. These are its texts of others.'
            : `Differences from revision ${content.accepted_revision} in the texts that wait for you.`}
        </P>
        {content.difference === undefined ? (
          <P tone="muted">The difference is too long for this list.</P>
        ) : (
          <Table inCard columns={[{ name: 'Member', width: 200 }, { name: 'Before' }, { name: 'Now' }]}>
            {content.difference.map(({ path, before, after }) => (
              <tr key={path}>
                <Cell mono>{visibleText(path)}</Cell>
                <td>{before === undefined ? <Text tone="dim">none</Text> : <WholeValue value={before} />}</td>
                <td>{after === undefined ? <Text tone="dim">none</Text> : <WholeValue value={after} />}</td>
              </tr>
            ))}
          </Table>
        )}
        <Problem error={error} />
        <Row>
          <Button kind="primary" disabled={isBusy || content.difference === undefined} onClick={() => void accept()}>
            Accept this revision
          </Button>
          <Hint>Your later runs execute it with all your rights.</Hint>
        </Row>
      </CardBody>
    </Card>
  );
}

/** Shows a value without folding any part, because a person decides whether to accept the whole value. */
const WholeValue = ({ value }: { value: unknown }) => (
  <Text as="pre" whole>
    {visible(typeof value === 'string' ? value : JSON.stringify(value, null, 2))}
  </Text>
);
