BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0015');
CREATE TABLE applied (
	number INTEGER NOT NULL, 
	PRIMARY KEY (number)
);
CREATE TABLE audit (
	id INTEGER NOT NULL, 
	at DOUBLE NOT NULL, 
	login TEXT DEFAULT '' NOT NULL, 
	address TEXT DEFAULT '' NOT NULL, 
	action TEXT DEFAULT '' NOT NULL, 
	object TEXT DEFAULT '' NOT NULL, 
	outcome TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE choices (
	id INTEGER NOT NULL, 
	conversation TEXT NOT NULL, 
	persona TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (conversation)
);
CREATE TABLE day_tools (
	id INTEGER NOT NULL, 
	day DOUBLE NOT NULL, 
	tool TEXT DEFAULT '' NOT NULL, 
	requests DOUBLE NOT NULL, 
	prompt DOUBLE NOT NULL, 
	completion DOUBLE NOT NULL, 
	cached DOUBLE NOT NULL, 
	unpriced DOUBLE NOT NULL, 
	cost DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE day_totals (
	id INTEGER NOT NULL, 
	day DOUBLE NOT NULL, 
	who BIGINT DEFAULT 0 NOT NULL, 
	tokens BIGINT DEFAULT 0 NOT NULL, 
	cost DOUBLE NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (day, who)
);
CREATE TABLE day_usage (
	id INTEGER NOT NULL, 
	day DOUBLE NOT NULL, 
	conversation TEXT DEFAULT '' NOT NULL, 
	asker BIGINT DEFAULT 0 NOT NULL, 
	model TEXT DEFAULT '' NOT NULL, 
	requests BIGINT DEFAULT 0 NOT NULL, 
	prompt BIGINT DEFAULT 0 NOT NULL, 
	completion BIGINT DEFAULT 0 NOT NULL, 
	cached BIGINT DEFAULT 0 NOT NULL, 
	unpriced BIGINT DEFAULT 0 NOT NULL, 
	cost DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE memories (
	id INTEGER NOT NULL, 
	conversation TEXT NOT NULL, 
	private BOOLEAN DEFAULT 0 NOT NULL, 
	memory_id TEXT NOT NULL, 
	subject BIGINT DEFAULT 0 NOT NULL, 
	author BIGINT DEFAULT 0 NOT NULL, 
	text TEXT DEFAULT '' NOT NULL, 
	visibility TEXT DEFAULT '' NOT NULL, 
	kind TEXT DEFAULT '' NOT NULL, 
	sources TEXT NOT NULL, 
	made DOUBLE NOT NULL, 
	used DOUBLE NOT NULL, 
	expires DOUBLE NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (memory_id)
);
CREATE TABLE memory_terms (
	id INTEGER NOT NULL, 
	conversation TEXT NOT NULL, 
	memory_id TEXT NOT NULL, 
	shelf TEXT NOT NULL, 
	term TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE messages (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	conversation TEXT NOT NULL, 
	via_group BIGINT DEFAULT 0 NOT NULL, 
	message_id TEXT DEFAULT '' NOT NULL, 
	message_seq TEXT DEFAULT '' NOT NULL, 
	self_id BIGINT NOT NULL, 
	sender BIGINT NOT NULL, 
	nickname TEXT DEFAULT '' NOT NULL, 
	card TEXT DEFAULT '' NOT NULL, 
	role TEXT DEFAULT '' NOT NULL, 
	sub_type TEXT DEFAULT '' NOT NULL, 
	group_name TEXT DEFAULT '' NOT NULL, 
	segments TEXT NOT NULL, 
	time DOUBLE NOT NULL, 
	taken DOUBLE NOT NULL, 
	overheard BOOLEAN DEFAULT 0 NOT NULL, 
	erased BOOLEAN DEFAULT 0 NOT NULL, 
	turn_id TEXT DEFAULT '' NOT NULL
);
INSERT INTO "messages" VALUES(1,'10001:group:4242',0,'1','88',10001,777,'小雨','群主','owner','normal','测试群','[{"message_id":"-12345","type":"quote"},{"user_id":10001,"name":"霜","type":"mention"},{"type":"mention_all"},{"text":"你好 \"frost\"\n\u0000 🧊","type":"text"},{"id":"178","name":"/斜眼笑","type":"face"},{"file":"a.png","url":"https://x.test/a?b=1&c=2","summary":"[动画表情]","size":1024,"sticker":true,"type":"image"},{"id":"1","package_id":"2","key":"3","summary":"[早]","url":"https://x.test/s","type":"sticker"},{"file":"a.amr","url":"https://x.test/r","path":"/tmp/a.amr","size":7,"type":"record"},{"file":"a.mp4","url":"https://x.test/v","path":"","size":8,"type":"video"},{"name":"表格.xlsx","id":"f1","url":"","size":9,"type":"file"},{"id":"7301234567890123456","content":"[]","type":"forward"},{"kind":"json","data":"{\"app\":\"com.x\"}","prompt":"[卡片]","type":"card"},{"content":"# 标题","type":"markdown"},{"labels":["是","否"],"type":"keyboard"},{"result":"6","type":"dice"},{"result":"2","type":"rps"},{"kind":"poke","id":"1","type":"poke"},{"kind":"qq","id":"777","type":"contact"},{"title":"家","content":"路","latitude":"30.1","longitude":"120.2","type":"location"},{"kind":"music","title":"歌","url":"https://x.test/m","content":"词","type":"link"},{"kind":"onlinefile","name":"a","id":"b","type":"transfer"},{"kind":"basket","data":"{\"n\":1}","type":"unsupported"}]',1699999990.0,1700000000.0,1,0,'');
INSERT INTO "messages" VALUES(2,'10001:group:4242',0,'2','88',10001,777,'小雨','群主','owner','normal','测试群','[{"user_id":10001,"name":"","type":"mention"},{"text":"天气？","type":"text"}]',1699999990.0,1700000001.0,0,0,'');
INSERT INTO "messages" VALUES(3,'10001:group:4242',0,'4','88',10001,777,'小雨','群主','owner','normal','测试群','[]',1699999990.0,1700000002.0,1,1,'');
INSERT INTO "messages" VALUES(4,'10001:group:4242',0,'5','88',10001,777,'小雨','群主','owner','normal','测试群','[{"text":"not for the bot","type":"text"}]',1699999990.0,1700000003.0,1,0,'');
INSERT INTO "messages" VALUES(5,'10001:private:777',4242,'3','88',10001,777,'小雨','群主','owner','normal','测试群','[{"text":"删掉它","type":"text"}]',1699999990.0,1700000014.0,0,0,'t2');
CREATE TABLE pictures (
	id INTEGER NOT NULL, 
	digest TEXT NOT NULL, 
	words TEXT DEFAULT '' NOT NULL, 
	at DOUBLE NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
CREATE TABLE place_settings (
	id INTEGER NOT NULL, 
	conversation TEXT NOT NULL, 
	name TEXT NOT NULL, 
	value TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (conversation, name)
);
CREATE TABLE requests (
	id INTEGER NOT NULL, 
	turn_id TEXT NOT NULL, 
	run TEXT DEFAULT '' NOT NULL, 
	step BIGINT DEFAULT 0 NOT NULL, 
	model TEXT DEFAULT '' NOT NULL, 
	outcome TEXT DEFAULT '' NOT NULL, 
	message TEXT, 
	seconds DOUBLE NOT NULL, 
	at DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	run_id TEXT NOT NULL, 
	turn_id TEXT NOT NULL, 
	stop TEXT DEFAULT '' NOT NULL, 
	error TEXT DEFAULT '' NOT NULL, 
	steps BIGINT DEFAULT 0 NOT NULL, 
	prompt BIGINT DEFAULT 0 NOT NULL, 
	completion BIGINT DEFAULT 0 NOT NULL, 
	cached BIGINT DEFAULT 0 NOT NULL, 
	reasoning BIGINT DEFAULT 0 NOT NULL, 
	cost DOUBLE, 
	state TEXT, 
	expires DOUBLE, 
	PRIMARY KEY (id), 
	UNIQUE (run_id)
);
INSERT INTO "runs" VALUES(1,'t1','t1','answered','',2,20,10,0,0,NULL,NULL,NULL);
INSERT INTO "runs" VALUES(2,'t2','t2','','',0,0,0,0,0,NULL,'{"run_id":"t2","conversation":{"platform_id":10001,"message_type":"private","session_id":777,"via_group":4242},"asker":{"user_id":777,"name":"小雨","role":"owner","is_owner":true,"authority":"group_admin","overheard":"everyone"},"messages":[{"text":"是机器人","type":"system"},{"text":"删掉它","images":[],"type":"user"}],"message":{"text":"","tool_calls":[{"id":"c1","name":"look","arguments":"{}","extras":""},{"id":"c2","name":"wipe","arguments":"{}","extras":""}],"reasoning":null,"type":"assistant"},"answers":[{"call_id":"c1","name":"look","content":"seen","is_error":false,"images":[],"code":"","type":"tool"},{"call":{"id":"c2","name":"wipe","arguments":"{}","extras":""},"asks":"真的？","expires":1700000600.0,"digest":"d1","arguments":"{}","number":3,"since":1700000000.0,"type":"pending"}],"usage":{"prompt":10,"completion":5,"cached":3,"reasoning":1,"cost":0.25},"steps":2,"response_id":"r1","spent":{"requests":2,"tokens":15.5,"sends":1}}',1700000600.0);
CREATE TABLE sends (
	id INTEGER NOT NULL, 
	send_id TEXT NOT NULL, 
	turn_id TEXT NOT NULL, 
	conversation TEXT NOT NULL, 
	via_group BIGINT DEFAULT 0 NOT NULL, 
	segments TEXT NOT NULL, 
	whole BOOLEAN NOT NULL, 
	final BOOLEAN NOT NULL, 
	state TEXT DEFAULT '' NOT NULL, 
	message_id TEXT DEFAULT '' NOT NULL, 
	reason TEXT DEFAULT '' NOT NULL, 
	queued DOUBLE NOT NULL, 
	changed DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "sends" VALUES(1,'s1','t1','10001:group:4242',0,'[{"message_id":"2","type":"quote"},{"text":"晴。","type":"text"},{"kind":"image","source":"base64://AA==","name":"a.png","type":"attachment"}]',1,1,'confirmed','99','',1700000000.0,1700000001.0);
CREATE TABLE speakers (
	id INTEGER NOT NULL, 
	conversation TEXT NOT NULL, 
	number BIGINT NOT NULL, 
	user_id BIGINT DEFAULT 0 NOT NULL, 
	name TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (conversation, number)
);
CREATE TABLE steered (
	id INTEGER NOT NULL, 
	turn_id TEXT NOT NULL, 
	step INTEGER NOT NULL, 
	message_id TEXT DEFAULT '' NOT NULL, 
	user TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE steps (
	id INTEGER NOT NULL, 
	turn_id TEXT NOT NULL, 
	step INTEGER NOT NULL, 
	message TEXT NOT NULL, 
	finish TEXT DEFAULT '' NOT NULL, 
	model TEXT DEFAULT '' NOT NULL, 
	seconds DOUBLE NOT NULL, 
	at DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "steps" VALUES(1,'t1',1,'{"text":"看看。","tool_calls":[{"id":"c1","name":"get_weather","arguments":"{\"city\": \"杭州\"}","extras":"{\"s\":1}"}],"reasoning":{"text":"想","endpoint":"https://x.test/v1","model":"m","field":"reasoning_content","details":"[1]"},"type":"assistant"}','tool_calls','m@x.test',0.5,1700000000.0);
CREATE TABLE things (
	id INTEGER NOT NULL, 
	conversation TEXT NOT NULL, 
	number BIGINT NOT NULL, 
	message_id TEXT DEFAULT '' NOT NULL, 
	sender BIGINT DEFAULT 0 NOT NULL, 
	thing TEXT, 
	at DOUBLE NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (conversation, number)
);
CREATE TABLE tool_calls (
	id INTEGER NOT NULL, 
	turn_id TEXT NOT NULL, 
	step INTEGER NOT NULL, 
	call_id TEXT NOT NULL, 
	name TEXT DEFAULT '' NOT NULL, 
	started DOUBLE, 
	result TEXT, 
	code TEXT DEFAULT '' NOT NULL, 
	seconds DOUBLE, 
	PRIMARY KEY (id), 
	UNIQUE (turn_id, step, call_id)
);
INSERT INTO "tool_calls" VALUES(1,'t1',1,'c1','get_weather',1700000007.0,'{"call_id":"c1","name":"get_weather","content":"error: 晴 [TOOL_FAILED]","is_error":true,"images":["data:,"],"code":"TOOL_FAILED","type":"tool"}','TOOL_FAILED',0.25);
CREATE TABLE turns (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	turn_id TEXT NOT NULL, 
	conversation TEXT NOT NULL, 
	message_id TEXT DEFAULT '' NOT NULL, 
	asker BIGINT NOT NULL, 
	question TEXT NOT NULL, 
	user TEXT NOT NULL, 
	round TEXT, 
	opened DOUBLE NOT NULL, 
	closed DOUBLE, 
	retry_of TEXT DEFAULT '' NOT NULL
, uncalled BOOLEAN DEFAULT 0 NOT NULL);
INSERT INTO "turns" VALUES(1,'t1','10001:group:4242','2',777,'{"self_id":10001,"time":1699999990.0,"conversation":{"platform_id":10001,"message_type":"group","session_id":4242,"via_group":0},"message_id":"2","sender":{"user_id":777,"nickname":"小雨","card":"群主","role":"owner"},"segments":[{"user_id":10001,"name":"","type":"mention"},{"text":"天气？","type":"text"}],"sub_type":"normal","message_seq":"88","group_name":"测试群","type":"message_received"}','{"text":"[提问]\n小雨(777): 天气？","images":["data:image/png;base64,AA=="],"type":"user"}','[{"text":"[提问]\n小雨(777): 天气？","images":["data:image/png;base64,AA=="],"type":"user"},{"text":"看看。","tool_calls":[{"id":"c1","name":"get_weather","arguments":"{\"city\": \"杭州\"}","extras":"{\"s\":1}"}],"reasoning":{"text":"想","endpoint":"https://x.test/v1","model":"m","field":"reasoning_content","details":"[1]"},"type":"assistant"},{"call_id":"c1","name":"get_weather","content":"error: 晴 [TOOL_FAILED]","is_error":true,"images":["data:,"],"code":"TOOL_FAILED","type":"tool"},{"text":"晴。","tool_calls":[],"reasoning":null,"type":"assistant"}]',1700000000.0,1700000002.0,'t0',0);
INSERT INTO "turns" VALUES(2,'t2','10001:private:777','3',777,'{"self_id":10001,"time":1699999990.0,"conversation":{"platform_id":10001,"message_type":"private","session_id":777,"via_group":4242},"message_id":"3","sender":{"user_id":777,"nickname":"小雨","card":"群主","role":"owner"},"segments":[{"text":"删掉它","type":"text"}],"sub_type":"normal","message_seq":"88","group_name":"测试群","type":"message_received"}','{"text":"删掉它","images":[],"type":"user"}',NULL,1700000004.0,NULL,'',0);
INSERT INTO "turns" VALUES(3,'t3','10001:private:777','3',777,'{"self_id":10001,"time":1699999990.0,"conversation":{"platform_id":10001,"message_type":"private","session_id":777,"via_group":4242},"message_id":"3","sender":{"user_id":777,"nickname":"小雨","card":"群主","role":"owner"},"segments":[{"text":"删掉它","type":"text"}],"sub_type":"normal","message_seq":"88","group_name":"测试群","type":"message_received"}','{"text":"又来","images":[],"type":"user"}',NULL,1700000005.0,NULL,'',0);
CREATE TABLE usage (
	id INTEGER NOT NULL, 
	turn_id TEXT NOT NULL, 
	step INTEGER NOT NULL, 
	conversation TEXT DEFAULT '' NOT NULL, 
	asker BIGINT DEFAULT 0 NOT NULL, 
	model TEXT DEFAULT '' NOT NULL, 
	prompt BIGINT DEFAULT 0 NOT NULL, 
	completion BIGINT DEFAULT 0 NOT NULL, 
	cached BIGINT DEFAULT 0 NOT NULL, 
	reasoning BIGINT DEFAULT 0 NOT NULL, 
	cost DOUBLE, 
	at DOUBLE NOT NULL, reserved BIGINT DEFAULT 0 NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "usage" VALUES(1,'t1',1,'10001:group:4242',777,'m@x.test',10,5,3,1,NULL,1700000000.0,0);
INSERT INTO "usage" VALUES(2,'t1',0,'10001:group:4242',777,'m@x.test',1,2,0,0,0.5,1700000003.0,0);
CREATE TABLE verdicts (
	id INTEGER NOT NULL, 
	conversation TEXT NOT NULL, 
	message_id TEXT DEFAULT '' NOT NULL, 
	sender BIGINT NOT NULL, 
	wakes BOOLEAN DEFAULT 0 NOT NULL, 
	weak BOOLEAN DEFAULT 0 NOT NULL, 
	reason TEXT DEFAULT '' NOT NULL, 
	at DOUBLE NOT NULL, until DOUBLE, 
	PRIMARY KEY (id)
);
CREATE TABLE windows (
	id INTEGER NOT NULL, 
	conversation TEXT NOT NULL, 
	first_turn BIGINT DEFAULT 0 NOT NULL, 
	read_to BIGINT DEFAULT 0 NOT NULL, 
	light_to BIGINT DEFAULT 0 NOT NULL, 
	summary TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (conversation)
);
INSERT INTO "windows" VALUES(1,'10001:private:777',0,5,0,'');
INSERT INTO "windows" VALUES(2,'10001:group:4242',1,0,1,'早先说过天气。');
CREATE INDEX messages_by_message_id ON messages (conversation, message_id, id);
CREATE INDEX messages_by_time ON messages (taken);
CREATE INDEX messages_by_conversation ON messages (conversation, id);
CREATE INDEX turns_by_turn_id ON turns (turn_id, id);
CREATE INDEX turns_by_conversation ON turns (conversation, id);
CREATE INDEX turns_left_open ON turns (id) WHERE closed IS NULL;
CREATE INDEX turns_kept ON turns (conversation, closed) WHERE round IS NOT NULL;
CREATE INDEX runs_suspended ON runs (id) WHERE state IS NOT NULL;
CREATE INDEX runs_by_turn_id ON runs (turn_id);
CREATE INDEX steps_by_turn_id ON steps (turn_id);
CREATE INDEX sends_by_turn_id ON sends (turn_id);
CREATE INDEX sends_by_message_id ON sends (conversation, message_id, id);
CREATE INDEX sends_unfinished ON sends (id) WHERE state IN ('queued', 'sending', 'unknown');
CREATE INDEX sends_by_send_id ON sends (send_id, id);
CREATE INDEX usage_by_turn_id ON usage (turn_id);
CREATE INDEX usage_by_time ON usage (at);
CREATE INDEX verdicts_by_message_id ON verdicts (conversation, message_id, id);
CREATE INDEX verdicts_by_time ON verdicts (at);
CREATE INDEX things_by_message_id ON things (conversation, message_id);
CREATE INDEX things_by_time ON things (at);
CREATE INDEX steered_by_turn_id ON steered (turn_id);
CREATE INDEX steered_by_message_id ON steered (message_id);
CREATE INDEX pictures_by_time ON pictures (at);
CREATE INDEX memory_terms_by_term ON memory_terms (shelf, term, memory_id);
CREATE INDEX memory_terms_by_memory_id ON memory_terms (memory_id);
CREATE INDEX memories_by_conversation ON memories (conversation, used);
CREATE INDEX memories_by_subject ON memories (subject, used);
CREATE INDEX memories_by_expires ON memories (expires);
CREATE INDEX requests_by_turn_id ON requests (turn_id);
CREATE INDEX day_usage_by_day ON day_usage (day);
CREATE INDEX audit_by_time ON audit (at);
CREATE INDEX runs_in_error ON runs (id) WHERE error <> '';
CREATE INDEX day_tools_by_day ON day_tools (day);
CREATE INDEX sends_published ON sends (id) WHERE state IN ('published', 'reworded');
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('messages',5);
INSERT INTO "sqlite_sequence" VALUES('turns',3);
COMMIT;
