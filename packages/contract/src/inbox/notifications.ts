/** The inbox of a person: notifications about runs of the team that need the person. */
import { z } from 'zod';
import { FactoryTaskStage } from '../factories/factory-tasks.ts';
import { maxCountedNotifications, maxMarkedNotifications } from '../limits.ts';
import { AcceptableKind } from '../runs/acceptances.ts';
import { pageMembers } from '../wire/pages.ts';
import { NonBlank, Text, Timestamp, Uuid } from '../wire/primitives.ts';
import { PageInfo } from '../wire/profiles.ts';

/** Reasons for which a person is asked or notified. */
export const NotificationKind = z
  .enum([
    'question',
    'answer_question',
    'spec_review',
    'pr_review',
    'blocked',
    'failed',
    'acceptance',
    'failed_times',
    'missed',
    'budget',
  ])
  .meta({
    id: 'NotificationKind',
    description:
      '`question`: a run asks a question. `answer_question`: it asks one with answers to choose from. `blocked`: a run asks for permission to act. `spec_review`: a plan waits for a review: a turn with the mode plan has ended, or a turn of a task in the stage SPEC. `pr_review`: a turn with a pull request has ended. `failed`: a run without a parent is FAILED or in ERROR. `acceptance`: a revision waits for acceptance (`GET /acceptances`). `failed_times`: runs of a schedule or an automation failed several times in a row. `missed`: a schedule or an automation could not start a run. `budget`: the budget of the team is used up',
  });
export type NotificationKind = z.infer<typeof NotificationKind>;

const Recipient = z
  .object({ uid: z.string().describe('UID of the person'), email: z.string().optional().describe('Email address') })
  .meta({ id: 'NotificationRecipient', description: 'A person who is asked' });

const QuestionType = z
  .enum(['single_select', 'multi_select'])
  .meta({ id: 'NotificationQuestionType', description: 'How many options an answer may choose' });

const Question = z
  .object({
    id: z.string().describe('`blocked_on.request_id` of the run'),
    question: z.string().describe('The question, in the words of the agent'),
    type: QuestionType,
    options: z.array(z.string()).describe('Answers that the agent suggests; other answers are allowed too'),
    recommended_option_index: z.int().optional().describe('Option that the agent recommends, from 0'),
  })
  .meta({ id: 'NotificationQuestion', description: 'A question of an agent' });

export const Notification = z
  .object({
    notification_uid: z.string().describe('UID of the notification'),
    factory_uid: z.string().nullable().describe('Factory of the work; null: the work belongs to no factory'),
    factory_task_uid: z.string().nullable().describe('Task of the factory; null: the work is not a task'),
    kind: NotificationKind,
    stage: FactoryTaskStage.nullable().describe('Stage of the task; null: the work is not a task'),
    title: z
      .string()
      .describe('Title of the run, or name of the content, schedule or automation. Agents and other people wrote it'),
    description: z
      .string()
      .optional()
      .describe('What is asked, or why the run failed; long texts are shortened. Agents and other people wrote it'),
    is_read: z.boolean().optional().describe('Whether the caller has read it. Absent with the scope `team`'),
    recipients: z.array(Recipient).describe('Members of the team who are asked and have not dismissed it'),
    created_at: Timestamp.describe('When it was created, RFC 3339 in UTC'),
    origin_link: z.string().optional().describe('Address of the ticket or event from which the work came'),
    run_id: Uuid.optional().describe('Id of the run'),
    schedule_id: Uuid.optional().describe('With `failed_times` and `missed`: the schedule'),
    automation_id: z.string().optional().describe('With `failed_times` and `missed`: UID of the automation'),
    url: z.string().optional().describe('Address of the first pull request of the run'),
    urls: z.array(z.string()).optional().describe('Addresses of all pull requests of the run, at most 20'),
    questions: z.array(Question).optional().describe('With `answer_question`: the question and its options'),
    acceptance: z
      .object({
        kind: AcceptableKind,
        uid: z.string().describe('UID of the content'),
        revision: z.int().describe('Number of the revision'),
      })
      .meta({ id: 'NotificationAcceptance', description: 'The revision that waits' })
      .optional()
      .describe('With `acceptance`: what to send to `POST /acceptances`'),
  })
  .meta({ id: 'Notification', description: 'Something that needs a person' });
export type Notification = z.infer<typeof Notification>;

const kinds = z
  .array(NotificationKind)
  .max(20)
  .optional()
  .describe('Only these kinds. Repeat the parameter for several');
const FactoryUid = NonBlank.max(100).optional().describe('Only work of this factory');

const InboxScope = z.enum(['mine', 'team']).meta({
  id: 'InboxScope',
  description: '`mine`: notifications of the caller, who must be a person. `team`: of any member of the team',
});

export const ListNotificationsQuery = z.object({
  scope: InboxScope.default('mine'),
  factory_uid: FactoryUid,
  recipient_uid: NonBlank.max(100)
    .optional()
    .describe('Only notifications of this person. With the scope `mine`, only the UID of the caller is allowed'),
  kind: kinds,
  is_read: z.boolean().optional().describe('With the scope `mine`: only those that are read, or not read'),
  ...pageMembers('Notifications', { usual: 50 }),
});
export type ListNotificationsQuery = z.infer<typeof ListNotificationsQuery>;

export const ListNotificationsResponse = z
  .object({ items: z.array(Notification).describe('Newest first'), page_info: PageInfo })
  .meta({ id: 'ListNotificationsResponse', description: 'A page of unresolved notifications' });
export type ListNotificationsResponse = z.infer<typeof ListNotificationsResponse>;

export const CountNotificationsQuery = z.object({ factory_uid: FactoryUid, kind: kinds });
export type CountNotificationsQuery = z.infer<typeof CountNotificationsQuery>;

export const CountNotificationsResponse = z
  .object({
    unread: z.int().describe('Number of notifications of the caller that are not read'),
    total: z
      .int()
      .describe(`Number of notifications of the caller, at most ${maxCountedNotifications}: then there may be more`),
  })
  .meta({ id: 'CountNotificationsResponse', description: 'How many notifications the caller has' });
export type CountNotificationsResponse = z.infer<typeof CountNotificationsResponse>;

export const MarkNotificationsRequest = z
  .object({
    notification_uids: z
      .array(Text.max(100))
      .min(1)
      .max(maxMarkedNotifications)
      .describe(`UIDs of notifications, at most ${maxMarkedNotifications}`),
  })
  .meta({ id: 'MarkNotificationsRequest', description: 'The notifications to change' });
export type MarkNotificationsRequest = z.infer<typeof MarkNotificationsRequest>;

export const MarkNotificationsResponse = z
  .object({
    outcomes: z
      .array(
        z
          .object({
            notification_uid: z.string().describe('UID of the request'),
            ok: z
              .boolean()
              .describe('False: the caller is not asked. True: it is done, or there is no such notification any more'),
          })
          .meta({ id: 'NotificationOutcome', description: 'Outcome for one notification' }),
      )
      .describe('In the order of the request'),
  })
  .meta({ id: 'MarkNotificationsResponse', description: 'Outcome for each notification' });
export type MarkNotificationsResponse = z.infer<typeof MarkNotificationsResponse>;
