# In the place of NapCat's own entry point, which ours starts once the settings are there.
echo "NapCat logs in ${ACCOUNT:-whoever scans the code}"
exec python /standin/onebot.py
