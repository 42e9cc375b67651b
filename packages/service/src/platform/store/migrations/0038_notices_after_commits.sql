-- The statements that write deliveries notify the streams after the commit. Only the trigger used the function.
-- Contract: needs code of migration 0019 or later.
DROP TRIGGER webhook_deliveries_changed ON webhook_deliveries;
DROP FUNCTION notify_webhook_deliveries();
