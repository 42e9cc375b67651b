import type { WaitingAfterChange } from '@runyard/contract/runs/acceptances';
import type { UserProfile } from '@runyard/contract/wire/profiles';
import { visibleText } from '@runyard/contract/wire/visible';
import { useSession } from '../api/session.ts';
import { Hint, Row, Stack } from './blocks.tsx';
import { Check } from './controls.tsx';
import { showToast } from './toast.tsx';

const nameOf = ({ display_name, uid }: UserProfile): string => visibleText(display_name ?? uid);

/** The part of a form that says as whom the runs of a schedule or an automation act, and offers to take it over. */
export function ExecutorField({ executor }: { executor: UserProfile | undefined }) {
  const { person } = useSession();
  if (executor === undefined) return null;
  const isMe = executor.uid === person.uid;
  return (
    <Stack gap={2}>
      <Hint as="p">{`Its runs act as ${isMe ? 'you' : nameOf(executor)}, also after a change.`}</Hint>
      {!isMe && (
        <Row as="label">
          <Check type="checkbox" name="take_over" />
          Take it over: its runs act as me from now on
        </Row>
      )}
    </Stack>
  );
}

/** Returns the member of the request that takes the schedule or automation over, if the person asked for it. */
export const takeOverOf = (data: FormData): { executor_uid?: string } =>
  data.get('take_over') === null ? {} : { executor_uid: 'me' };

/** Shows who must accept a content after it was saved. */
export function tellWaiting(waiting: WaitingAfterChange | undefined): void {
  if (!waiting) return;
  const names = new Set([...waiting.people, ...waiting.starts.map(({ executor }) => executor)].map(nameOf));
  const kept = waiting.kept_authors.map(nameOf);
  const texts = [
    ...(names.size > 0 ? [`Until they accept it, runs lack personal rights of: ${[...names].join(', ')}.`] : []),
    ...(kept.length > 0 ? [`Authors beside you, until you accept it in the inbox: ${kept.join(', ')}.`] : []),
  ];
  if (texts.length > 0) showToast(`Saved. ${texts.join(' ')}`);
}
