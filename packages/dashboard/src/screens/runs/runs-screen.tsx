import { Page } from '../../frame/page.tsx';

export function RunsScreen() {
  return <Page title="RunsScreen">{null}</Page>;
}
