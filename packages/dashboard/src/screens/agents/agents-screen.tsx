import { Page } from '../../frame/page.tsx';

export function AgentsScreen() {
  return <Page title="AgentsScreen">{null}</Page>;
}
