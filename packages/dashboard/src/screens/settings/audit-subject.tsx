import type { AuditEntry } from '@runyard/contract/team/audit';
import { visibleText } from '@runyard/contract/wire/visible';
import type { LinkProps } from '@tanstack/react-router';
import { TextLink } from '../../parts/blocks.tsx';
import type { settingsTabs } from './tabs.ts';

/** The tabs that list the things of a kind. */
const tabs: Readonly<Record<string, (typeof settingsTabs)[number]['name']>> = {
  budget: 'budget',
  code_host_credential: 'code-hosts',
  event_subscription: 'events',
  invitation: 'members',
  key: 'keys',
  mcp_server: 'mcp',
  member: 'members',
  model_provider: 'models',
  model_settings: 'models',
  secret: 'secrets',
};

/** Returns where the page of the thing is; undefined if it has none. */
function pageOf({ type, uid }: AuditEntry['subject']): LinkProps | undefined {
  const tab = tabs[type];
  if (tab !== undefined) return { to: '/settings/$tab', params: { tab } };
  switch (type) {
    case 'run':
      return { to: '/runs/$runId', params: { runId: uid } };
    case 'environment':
      return { to: '/environments/$uid', params: { uid } };
    case 'schedule':
      return { to: '/schedules/$scheduleId', params: { scheduleId: uid } };
    case 'factory':
    case 'factory_source':
      return { to: '/factories/$factoryUid', params: { factoryUid: uid } };
    // An entry does not name the factory of these things, so the link leads to the lists of all factories.
    case 'webhook':
    case 'automation':
      return { to: '/factories', search: { tab: `${type}s` } };
    case 'agent_identity':
      return { to: '/agents' };
    case 'worker_pool':
      return { to: '/workers' };
    default:
      return undefined;
  }
}

/** Shows the name of the thing that an entry of the audit log is about, as a link to the thing if it has a page and was not deleted. */
export function AuditSubject({ entry: { action, subject } }: { entry: AuditEntry }) {
  const name = visibleText(subject.name ?? subject.uid);
  const page = action.endsWith('.delete') ? undefined : pageOf(subject);
  return page === undefined ? name : <TextLink {...page}>{name}</TextLink>;
}
