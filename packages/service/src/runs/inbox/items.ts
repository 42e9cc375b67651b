/** Converts rows of notifications to the form of the API. */
import type { FactoryTaskStage } from '@runyard/contract/factories/factory-tasks';
import type { Notification } from '@runyard/contract/inbox/notifications';
import { shorten } from '@runyard/contract/wire/shorten';
import { maxDescription, type NotificationRow } from './rows.ts';

/** The task of a factory to which a conversation belongs. */
export interface TaskOfConversation {
  readonly uid: string;
  readonly factoryUid: string;
  readonly stage: FactoryTaskStage;
}

/** Returns the tasks of the given conversations of a team. A higher room passes this function. */
export type ReadTasks = (
  teamId: string,
  conversationIds: readonly string[],
) => Promise<ReadonlyMap<string, TaskOfConversation>>;

/** Converts a row. `withRead`: shows whether the caller has read it. */
export function toNotification(
  row: NotificationRow,
  task: TaskOfConversation | undefined,
  withRead: boolean,
): Notification {
  const { question, urls, ticket_url: ticketUrl, kind } = row;
  const description = question ? question.title : kind === 'failed' ? row.status_message : row.about;
  return {
    notification_uid: row.uid,
    factory_uid: task?.factoryUid ?? row.factory_uid,
    factory_task_uid: task?.uid ?? null,
    kind,
    stage: task?.stage ?? null,
    title: row.title,
    ...(description === null ? {} : { description: shorten(description, maxDescription) }),
    ...(withRead && row.is_read !== null ? { is_read: row.is_read } : {}),
    recipients: row.recipients,
    created_at: row.created_at,
    ...(ticketUrl === null ? {} : { origin_link: ticketUrl }),
    ...(row.run_id === null ? {} : { run_id: row.run_id }),
    ...(row.schedule_id === null ? {} : { schedule_id: row.schedule_id }),
    ...(row.automation_uid === null ? {} : { automation_id: row.automation_uid }),
    ...(urls?.[0] === undefined ? {} : { url: urls[0], urls }),
    ...(kind === 'answer_question' && question ? { questions: [toQuestion(question)] } : {}),
  };
}

const toQuestion = ({ request_id, title, options }: NonNullable<NotificationRow['question']>) => ({
  id: request_id,
  question: title,
  type: 'single_select' as const,
  options: options ?? [],
});
