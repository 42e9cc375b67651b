import type { AuditEntry } from '@runyard/contract/team/audit';
import { visibleText } from '@runyard/contract/wire/visible';
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

/** Shows the name of the thing that an entry of the audit log is about, as a link to the thing if it has a page and was not deleted. */
export function AuditSubject({ entry: { action, subject } }: { entry: AuditEntry }) {
  const { type, uid } = subject;
  const name = visibleText(subject.name ?? uid);
  if (action.endsWith('.delete')) return name;
  const tab = tabs[type];
  if (tab !== undefined)
    return (
      <TextLink to="/settings/$tab" params={{ tab }}>
        {name}
      </TextLink>
    );
  switch (type) {
    case 'run':
      return (
        <TextLink to="/runs/$runId" params={{ runId: uid }}>
          {name}
        </TextLink>
      );
    case 'environment':
      return (
        <TextLink to="/environments/$uid" params={{ uid }}>
          {name}
        </TextLink>
      );
    case 'schedule':
      return (
        <TextLink to="/schedules/$scheduleId" params={{ scheduleId: uid }}>
          {name}
        </TextLink>
      );
    case 'factory':
    case 'factory_source':
      return (
        <TextLink to="/factories/$factoryUid" params={{ factoryUid: uid }}>
          {name}
        </TextLink>
      );
    // An entry does not name the factory of these things, so the link leads to the lists of all factories.
    case 'webhook':
    case 'automation':
      return (
        <TextLink to="/factories" search={{ tab: `${type}s` }}>
          {name}
        </TextLink>
      );
    case 'agent_identity':
      return <TextLink to="/agents">{name}</TextLink>;
    case 'worker_pool':
      return <TextLink to="/workers">{name}</TextLink>;
    default:
      return name;
  }
}
